// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collector/importers/input_file.h"

namespace rankscope::collector {

/// The part of a text that is in memory: a buffer that slides forward over an InputFile. One byte in front of data()
/// and kPadding bytes behind data() + size() may be overwritten by the user (simdjson reads beyond the end; a slice
/// gets its brackets in place).
class TextWindow {
  public:
    static constexpr size_t kPadding = 64;

    explicit TextWindow(InputFile& file) : m_file(file) {}

    char* data() { return m_buffer.get() + m_begin; }
    size_t size() const { return m_end - m_begin; }
    /// Offset of data() in the (uncompressed) text.
    uint64_t offset() const { return m_offset; }
    bool atEnd() const { return m_atEnd; }

    /// Makes at least `bytes` bytes available; false when the text ends before. Invalidates data().
    bool require(size_t bytes);
    /// Moves data() forward by `bytes` <= size().
    void advance(size_t bytes);

  private:
    InputFile& m_file;
    std::unique_ptr<char[]> m_buffer;  // not filled: a small file touches few of its pages
    size_t m_capacity = 0;
    size_t m_begin = 0;
    size_t m_end = 0;
    uint64_t m_offset = 0;
    bool m_atEnd = false;
};

}  // namespace rankscope::collector
