// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "injector/capture_format/crc32c.h"

namespace rankscope::capture {
namespace {

constexpr size_t kMaxThreads = 65536;

/// The path without its ending.
std::string baseOf(const std::string& path) {
    const std::string suffix = ".cap";
    if (path.size() <= suffix.size() || path.compare(path.size() - suffix.size(), suffix.size(), suffix) != 0)
        return path;
    return path.substr(0, path.size() - suffix.size());
}

template <size_t N>
void terminate(char (&text)[N]) {
    text[N - 1] = '\0';
}

}  // namespace

CaptureReader::CaptureReader(std::string path) : m_path(std::move(path)) {
    // O_NONBLOCK: a FIFO of the right name must not hang us.
    const int fd = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) throw CaptureError(m_path + ": cannot be opened: " + std::strerror(errno));
    m_blocks = std::make_unique<BlockScanner>(fd, m_path, kFileHeaderBytes, m_losses);
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) throw CaptureError(m_path + ": not a regular file");
    if (info.st_size == 0) throw CaptureError(m_path + ": byte 0: the file is empty");
    const ssize_t got = ::pread(fd, &m_header, sizeof m_header, 0);
    if (got < 8 || std::memcmp(m_header.magic, kFileMagic, sizeof kFileMagic) != 0)
        throw CaptureError(m_path + ": byte 0: not a rankscope capture file");
    if (got < static_cast<ssize_t>(sizeof m_header))
        throw CaptureError(m_path + ": byte " + std::to_string(got) + ": the file ends inside its header");
    if (m_header.endianMark != 0x01020304)
        throw CaptureError(m_path + ": byte 16: written on a machine of other byte order, or damaged");
    if (m_header.formatVersion != kFormatVersion)
        throw CaptureError(m_path + ": byte 8: format version " + std::to_string(m_header.formatVersion) +
                           ", this program reads " + std::to_string(kFormatVersion));
    if (m_header.headerBytes != kFileHeaderBytes ||
        m_header.headerChecksum != crc32c(&m_header, offsetof(FileHeader, headerChecksum)))
        throw CaptureError(m_path + ": byte 0: the checksum of the file header is wrong");
    terminate(m_header.identitySource);
    terminate(m_header.host);
    terminate(m_header.bootId);
    terminate(m_header.jobId);
    terminate(m_header.executable);
    terminate(m_header.injectorVersion);
    m_details = std::make_unique<DetailReader>(baseOf(m_path), m_header.processStartNs, m_losses);
    m_filter = std::make_unique<SinceFilter>(m_details->sinceNs());
}

void CaptureReader::leaveOutRings() {
    m_hasRings = false;
    m_filter = std::make_unique<SinceFilter>(INT64_MAX);  // nothing is told in another place
}

int64_t CaptureReader::highWaterNs(Source source) const {
    const auto index = static_cast<size_t>(source);
    return index < std::size(m_highWaterNs) ? m_highWaterNs[index] : 0;
}

void CaptureReader::noteLost(uint32_t threadIndex, uint64_t lostRecords) {
    if (lostRecords == 0 || (m_lostByThread.size() >= kMaxThreads && m_lostByThread.count(threadIndex) == 0)) return;
    uint64_t& most = m_lostByThread[threadIndex];
    most = std::max(most, lostRecords);
}

bool CaptureReader::nextBlock() {
    if (m_rings || !m_blocks->next()) return false;
    const BlockHeader& block = m_blocks->header();
    m_runData = m_blocks->payload().data();
    m_cursor = RecordCursor(m_runData, m_blocks->payload().size());
    m_runOffset = m_blocks->blockOffset() + sizeof(BlockHeader);
    m_view.threadIndex = block.threadIndex;
    m_view.source = block.source;
    m_view.blockSequence = block.sequence;
    noteLost(block.threadIndex, block.lostRecords);
    const auto source = static_cast<size_t>(block.source);
    if (source < std::size(m_highWaterNs)) m_highWaterNs[source] = std::max(m_highWaterNs[source], block.highWaterNs);
    return true;
}

bool CaptureReader::nextDetail() {
    if (m_rings || !m_details->next()) return false;
    const BlockScanner& block = m_details->block();
    m_isDetail = true;
    m_runData = block.payload().data();
    m_cursor = RecordCursor(m_runData, block.payload().size());
    m_runOffset = block.blockOffset() + sizeof(BlockHeader);
    m_view.threadIndex = block.header().threadIndex;
    m_view.source = block.header().source;
    m_view.blockSequence = static_cast<uint32_t>(m_blocks->sequenceEnd());
    return true;
}

bool CaptureReader::nextRing() {
    if (!m_rings)
        m_rings = std::make_unique<RingReader>(baseOf(m_path) + ".ring", m_header.processStartNs,
                                               m_blocks->sequenceEnd(), m_details->ringEnds(), m_losses);
    if (!m_rings->next()) return false;
    m_isDetail = m_details->sinceNs() != INT64_MAX;
    m_runData = m_rings->cells().data();
    m_cursor = RecordCursor(m_runData, m_rings->cells().size());
    m_runOffset = m_rings->ringOffset();
    m_view.threadIndex = m_rings->threadIndex();
    m_view.source = Source::none;
    m_view.blockSequence = static_cast<uint32_t>(m_blocks->sequenceEnd());
    noteLost(m_rings->threadIndex(), m_rings->lostRecords());
    return true;
}

void CaptureReader::beginFold() {
    if (!m_folds.begin(m_view.as<FoldRecord>(), m_view.data + sizeof(FoldRecord)))
        m_losses.add(ReaderLossKind::malformedRecord, m_view.fileOffset, m_view.as<FoldRecord>().items,
                     m_path + ": byte " + std::to_string(m_view.fileOffset) +
                         ": folded calls build on a record that is missing");
    m_block = m_cursor;
    m_cursor = {};
    m_folding = true;
}

/// The records of the next item of the FoldRecord at hand; behind the last one, on with the block it is of.
bool CaptureReader::nextFolded() {
    while (const std::optional<FoldItem> item = m_folds.next()) {
        if (!m_filter->keeps(*item)) continue;
        const std::vector<uint8_t>& cells = m_foldRecords.of(*item);
        m_runData = cells.data();
        m_cursor = RecordCursor(m_runData, cells.size());
        m_view.threadIndex = item->key.thread;
        return true;
    }
    if (m_folds.isDamaged())
        m_losses.add(ReaderLossKind::malformedRecord, m_runOffset, 1,
                     m_path + ": byte " + std::to_string(m_runOffset) + ": folded calls contradict themselves");
    m_folding = false;
    m_cursor = m_block;
    m_runData = m_blocks->payload().data();
    m_view.threadIndex = m_blocks->header().threadIndex;
    return true;
}

bool CaptureReader::nextRun() {
    if (m_folding) return nextFolded();
    return nextBlock() || (m_hasRings && (nextDetail() || nextRing()));
}

const RecordView* CaptureReader::next() {
    while (!m_finished) {
        switch (m_cursor.next()) {
            case RecordCursor::Step::record:
                m_view.data = m_cursor.record();
                m_view.bytes = m_cursor.recordBytes();
                if (!m_folding) m_view.fileOffset = m_runOffset + static_cast<uint64_t>(m_view.data - m_runData);
                if (m_view.type() == RecordType::detailSince) break;
                // What was open when the oldest file began matters; of the others it is known by then.
                if (m_view.type() == RecordType::openRanges && m_hasDetail) break;
                m_hasDetail = m_hasDetail || (m_isDetail && m_view.type() != RecordType::openRanges);
                if (m_view.type() == RecordType::fold) {
                    if (!m_folding && !m_isDetail) beginFold();
                    break;
                }
                if ((m_isDetail || m_view.type() == RecordType::openRanges || m_view.type() == RecordType::callGap) &&
                    !m_filter->keeps(m_view))
                    break;
                ++m_recordCount;
                if (m_view.type() == RecordType::loss && m_view.head().aux == static_cast<uint16_t>(LossKind::ringFull))
                    m_toldLost += m_view.as<LossRecord>().count;
                return &m_view;
            case RecordCursor::Step::unknown:
                ++m_unknownRecords;
                break;
            case RecordCursor::Step::malformed:
                m_losses.add(
                    ReaderLossKind::malformedRecord, m_runOffset, 1,
                    m_path + ": byte " + std::to_string(m_runOffset) + ": a record of this block contradicts itself");
                break;
            case RecordCursor::Step::end:
                if (!nextRun()) finish();
                break;
        }
    }
    return nullptr;
}

void CaptureReader::finish() {
    m_finished = true;
    const auto& torn = m_blocks->torn();
    if (torn && m_rings && m_rings->holdsBlock(torn->sequence))
        m_losses.takeBack(ReaderLossKind::tornTail, torn->offset);
    if (m_unknownRecords > 0)
        m_losses.add(ReaderLossKind::unknownRecord, 0, m_unknownRecords,
                     m_path + ": " + std::to_string(m_unknownRecords) + " records of types this version does not know");
    uint64_t lost = 0;
    for (const auto& [thread, count] : m_lostByThread) lost = lost + count < lost ? UINT64_MAX : lost + count;
    if (lost > m_toldLost)
        m_losses.add(ReaderLossKind::ringFull, 0, lost - m_toldLost,
                     m_path + ": " + std::to_string(lost - m_toldLost) +
                         " records did not fit into the rings of the job's threads");
}

}  // namespace rankscope::capture
