// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/text_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankscope::collector {

namespace {
constexpr size_t kReadBytes = 256 * 1024;
}

bool TextWindow::require(size_t bytes) {
    if (size() >= bytes) return true;
    if (m_atEnd) return false;
    const size_t missing = bytes - size();
    const size_t readBytes = std::max(missing, kReadBytes);
    const size_t wanted = size() + readBytes;
    if (m_begin == 0 || m_begin + wanted + kPadding > m_capacity) {
        // Slide what is left to the front, behind the one byte that belongs to the user; grow only for an event larger
        // than the buffer.
        if (1 + wanted + kPadding > m_capacity) {
            const size_t capacity = std::max(1 + wanted + kPadding, m_capacity + m_capacity / 2);
            auto larger = std::make_unique_for_overwrite<char[]>(capacity);
            if (size() > 0) std::memcpy(larger.get() + 1, data(), size());
            m_buffer = std::move(larger);
            m_capacity = capacity;
        } else {
            std::memmove(m_buffer.get() + 1, data(), size());
        }
        m_end = 1 + size();
        m_begin = 1;
    }
    while (size() < bytes && !m_atEnd) {
        const size_t got = m_file.read(m_buffer.get() + m_end, wanted - size());
        m_end += got;
        if (got == 0) m_atEnd = true;
    }
    return size() >= bytes;
}

void TextWindow::advance(size_t bytes) {
    m_begin += bytes;
    m_offset += bytes;
}

}  // namespace rankscope::collector
