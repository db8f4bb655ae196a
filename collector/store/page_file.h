// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankscope::store {

/// Appends finished pages to a SQLite database file that nobody has open, and tells the file's header of them
/// (https://www.sqlite.org/fileformat2.html, sections 1.2 and 1.3). Failures throw Error; a page that was appended and
/// is in no table is lost space only.
class PageFile {
  public:
    /// The file holds at least its first page. Throws Error when it is no database.
    explicit PageFile(const std::string& file);
    ~PageFile();
    PageFile(const PageFile&) = delete;
    PageFile& operator=(const PageFile&) = delete;

    size_t pageBytes() const noexcept { return m_pageBytes; }
    /// Bytes of a page that tables may use.
    size_t usableBytes() const noexcept { return m_usableBytes; }

    /// Number of the new page.
    uint32_t append(std::span<const uint8_t> page);
    /// Replaces a page that the file had before.
    void replace(uint32_t number, std::span<const uint8_t> page);
    /// Writes what is buffered and the header. Nothing may be appended afterwards.
    void close();

  private:
    void flush();
    void writeAt(std::span<const uint8_t> bytes, uint64_t offset);

    std::string m_file;
    int m_descriptor = -1;
    size_t m_pageBytes = 0;
    size_t m_usableBytes = 0;
    uint32_t m_pages = 0;           ///< in the file and in the buffer
    std::vector<uint8_t> m_buffer;  ///< pages that follow each other, not yet in the file
    uint64_t m_bufferOffset = 0;
};

}  // namespace rankscope::store
