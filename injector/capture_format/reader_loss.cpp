// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/reader_loss.h"

#include <algorithm>
#include <limits>

namespace rankscope::capture {

const char* readerLossName(ReaderLossKind kind) {
    switch (kind) {
        case ReaderLossKind::tornTail:
            return "torn tail";
        case ReaderLossKind::corruptHeader:
            return "corrupt bytes";
        case ReaderLossKind::corruptPayload:
            return "corrupt block";
        case ReaderLossKind::malformedRecord:
            return "malformed record";
        case ReaderLossKind::sequenceGap:
            return "missing blocks";
        case ReaderLossKind::repeatedBlock:
            return "repeated block";
        case ReaderLossKind::unknownRecord:
            return "unknown record";
        case ReaderLossKind::ringFull:
            return "ring full";
        case ReaderLossKind::ring:
            return "damaged ring";
    }
    return "unknown";
}

void LossList::add(ReaderLossKind kind, uint64_t offset, uint64_t count, const std::string& message) {
    if (m_rows.size() >= kMaxRows) {
        for (auto row = m_rows.rbegin(); row != m_rows.rend(); ++row) {
            if (row->kind != kind) continue;
            row->count = row->count > std::numeric_limits<uint64_t>::max() - count
                             ? std::numeric_limits<uint64_t>::max()
                             : row->count + count;
            return;
        }
        if (m_rows.size() >= kMaxRows + 16) return;  // one row of each kind still fits
    }
    m_rows.push_back({kind, offset, count, message});
}

void LossList::takeBack(ReaderLossKind kind, uint64_t offset) {
    const auto row = std::find_if(m_rows.begin(), m_rows.end(),
                                  [&](const ReaderLoss& loss) { return loss.kind == kind && loss.offset == offset; });
    if (row != m_rows.end()) m_rows.erase(row);
}

}  // namespace rankscope::capture
