// SPDX-License-Identifier: Apache-2.0
#include "collector/store/page_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "collector/store/big_endian.h"
#include "collector/store/error.h"
#include "collector/store/page_format.h"

namespace rankscope::store {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
/// The page at this offset is SQLite's for file locks and holds no data.
constexpr uint64_t kLockByte = 1 << 30;

[[noreturn]] void fail(const std::string& file, const char* call, int error) {
    const char* hint = error == ENOSPC || error == EDQUOT ? "the disk is full: free some space or write elsewhere"
                                                          : "the disk may be failing, or the folder is gone";
    throw Error(file, std::string(call) + ": " + std::strerror(error), hint);
}

std::array<uint8_t, kHeaderBytes> readHeader(const std::string& file, int descriptor) {
    std::array<uint8_t, kHeaderBytes> header{};
    const ssize_t got = ::pread(descriptor, header.data(), header.size(), 0);
    if (got < 0) fail(file, "read", errno);
    if (static_cast<size_t>(got) < header.size() || std::memcmp(header.data(), "SQLite format 3", 16) != 0)
        throw Error(file, "no SQLite database", "");
    return header;
}

}  // namespace

PageFile::PageFile(const std::string& file) : m_file(file), m_descriptor(::open(file.c_str(), O_RDWR | O_CLOEXEC)) {
    if (m_descriptor < 0) fail(file, "open", errno);
    const auto header = readHeader(file, m_descriptor);
    m_pageBytes = header[kPageSizeAt] * 256u + header[kPageSizeAt + 1];
    if (m_pageBytes == 1) m_pageBytes = 65536;
    m_usableBytes = m_pageBytes - header[kReservedAt];
    m_pages = loadBig32(&header[kPageCountAt]);
    m_buffer.reserve(kBufferBytes + m_pageBytes);
    m_bufferOffset = uint64_t{m_pages} * m_pageBytes;
}

PageFile::~PageFile() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

uint32_t PageFile::append(std::span<const uint8_t> page) {
    if (m_bufferOffset + m_buffer.size() == kLockByte) {
        m_buffer.resize(m_buffer.size() + m_pageBytes, 0);
        ++m_pages;
    }
    m_buffer.insert(m_buffer.end(), page.begin(), page.end());
    if (m_buffer.size() >= kBufferBytes) flush();
    return ++m_pages;
}

void PageFile::replace(uint32_t number, std::span<const uint8_t> page) {
    writeAt(page, (uint64_t{number} - 1) * m_pageBytes);
}

void PageFile::close() {
    flush();
    auto header = readHeader(m_file, m_descriptor);
    // The count is believed only while both counters agree; a new one makes every reader look again.
    const uint32_t change = loadBig32(&header[kChangeCounterAt]) + 1;
    storeBig32(&header[kChangeCounterAt], change);
    storeBig32(&header[kVersionValidForAt], change);
    storeBig32(&header[kPageCountAt], m_pages);
    writeAt(header, 0);
    const int closed = ::close(m_descriptor);
    m_descriptor = -1;
    if (closed != 0) fail(m_file, "close", errno);
}

void PageFile::flush() {
    writeAt(m_buffer, m_bufferOffset);
    m_bufferOffset += m_buffer.size();
    m_buffer.clear();
}

void PageFile::writeAt(std::span<const uint8_t> bytes, uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::pwrite(m_descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) fail(m_file, "write", errno);
        bytes = bytes.subspan(static_cast<size_t>(wrote));
        offset += static_cast<uint64_t>(wrote);
    }
}

}  // namespace rankscope::store
