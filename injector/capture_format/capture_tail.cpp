// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/capture_tail.h"

#include <fcntl.h>

#include "injector/capture_format/reader.h"

namespace rankscope::capture {

const std::optional<FileHeader>& CaptureTail::header() {
    if (m_header) return m_header;
    try {
        m_header = CaptureReader(m_path).header();
        m_complaint.clear();
    } catch (const CaptureError& error) {  // not yet written, or no capture
        m_complaint = error.what();
    }
    return m_header;
}

bool CaptureTail::poll(const Take& take, uint64_t mostBytes) {
    if (!header()) return false;
    const int file = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    LossList told;  // by whoever collects it
    BlockScanner blocks(file, m_path, m_offset, told);
    const uint64_t begin = m_offset;
    while (m_offset - begin < mostBytes && blocks.next()) {
        m_offset = blocks.blockOffset() + sizeof(BlockHeader) + blocks.payload().size();
        take(blocks.header(), blocks.payload());
    }
    return m_offset != begin;
}

}  // namespace rankscope::capture
