// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/block_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "injector/capture_format/crc32c.h"

namespace rankscope::capture {
namespace {

// Space is reserved ahead, so that a full disk is met here, where it is a counter, and the words about the loss still
// fit.
constexpr uint64_t kReserveAhead = 1u << 20;
constexpr uint64_t kUrgentReserve = 64u << 10;

bool writeAll(int fd, iovec* parts, int count, uint64_t offset) noexcept {
    while (count > 0) {
        const ssize_t written = ::pwritev(fd, parts, count, static_cast<off_t>(offset));
        if (written < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        if (written == 0) return false;
        offset += static_cast<uint64_t>(written);
        auto left = static_cast<size_t>(written);
        while (count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            ++parts;
            --count;
        }
        if (count > 0) {
            parts->iov_base = static_cast<char*>(parts->iov_base) + left;
            parts->iov_len -= left;
        }
    }
    return true;
}

}  // namespace

bool BlockWriter::open(const char* path, FileHeader& header, uint64_t maxBytes) noexcept {
    if (!m_file.create(path)) return false;
    const int fd = m_file.descriptor();
    m_maxBytes = maxBytes;
    m_sequence = 0;
    m_offset = 0;
    m_reservedEnd = 0;
    m_canReserve = true;
    std::memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.formatVersion = kFormatVersion;
    header.headerBytes = kFileHeaderBytes;
    header.endianMark = 0x01020304;
    header.headerChecksum = crc32c(&header, offsetof(FileHeader, headerChecksum));
    static const char kZeros[kFileHeaderBytes - sizeof(FileHeader)] = {};
    iovec parts[2] = {{&header, sizeof header}, {const_cast<char*>(kZeros), sizeof kZeros}};
    if (!reserve(fd, kFileHeaderBytes, false) || !writeAll(fd, parts, 2, 0)) {
        const int error = errno;
        m_file.closeAndUnlink();
        errno = error;
        return false;
    }
    m_offset = kFileHeaderBytes;
    return true;
}

bool BlockWriter::reserve(int fd, uint64_t end, bool urgent) noexcept {
    if (!m_canReserve) return true;
    const uint64_t wanted = end + (urgent ? 0 : kUrgentReserve);
    if (wanted <= m_reservedEnd) return true;
    const uint64_t target = end + kReserveAhead;
    // KEEP_SIZE: a reader sees only what was written.
    if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(m_offset), static_cast<off_t>(target - m_offset)) ==
        0) {
        m_reservedEnd = target;
        return true;
    }
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
        // Perhaps just this block still fits together with its reserve.
        if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(m_offset), static_cast<off_t>(wanted - m_offset)) ==
            0) {
            m_reservedEnd = wanted;
            return true;
        }
        return false;
    }
    m_canReserve = false;  // a file system without fallocate: errors show up at the write itself
    return true;
}

AppendResult BlockWriter::append(const BlockInfo& info, const void* first, size_t firstBytes, const void* second,
                                 size_t secondBytes) noexcept {
    const size_t payload = firstBytes + secondBytes;
    if (!m_file.isOpen() || payload > kMaxBlockPayloadBytes || payload % kCellBytes != 0) return AppendResult::ioError;
    const uint64_t end = m_offset + kBlockHeaderBytes + payload;
    if (m_maxBytes != 0 && end > m_maxBytes + (info.urgent ? kUrgentReserve : 0)) return AppendResult::sizeCap;
    const int fd = m_file.descriptor();
    if (fd < 0 || !reserve(fd, end, info.urgent)) return AppendResult::ioError;

    BlockHeader header{};
    header.magic = kBlockMagic;
    header.sequence = m_sequence;
    header.payloadBytes = static_cast<uint32_t>(payload);
    header.recordCount = info.recordCount;
    header.threadIndex = info.threadIndex;
    header.source = info.source;
    header.lostRecords = info.lostRecords;
    header.highWaterNs = info.highWaterNs;
    header.ringEnd = info.ringEnd;
    header.payloadCrc = crc32c(second, secondBytes, crc32c(first, firstBytes));
    header.headerCrc = crc32c(&header, offsetof(BlockHeader, headerCrc));

    iovec parts[3] = {
        {&header, sizeof header}, {const_cast<void*>(first), firstBytes}, {const_cast<void*>(second), secondBytes}};
    if (!writeAll(fd, parts, 3, m_offset)) {
        // Take the torn piece back, so that a reader does not stumble over it; the next block overwrites it in any
        // case.
        [[maybe_unused]] const int ignored = ::ftruncate(fd, static_cast<off_t>(m_offset));
        m_reservedEnd = m_offset;
        return AppendResult::ioError;
    }
    m_offset = end;
    ++m_sequence;
    return AppendResult::ok;
}

bool BlockWriter::tell(const WatchCounters& counters) noexcept {
    const int fd = m_file.descriptor();
    return fd >= 0 &&
           ::pwrite(fd, &counters, sizeof counters, kWatchCountersOffset) == static_cast<ssize_t>(sizeof counters);
}

void BlockWriter::close() noexcept {
    const int fd = m_file.descriptor();
    if (fd >= 0) [[maybe_unused]]
        const int ignored = ::ftruncate(fd, static_cast<off_t>(m_offset));
    m_file.close();
}

void BlockWriter::remove() noexcept {
    m_file.closeAndUnlink();
}

void BlockWriter::abandon() noexcept {
    m_file.close();
}

}  // namespace rankscope::capture
