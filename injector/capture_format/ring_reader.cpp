// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "injector/capture_format/ring_layout.h"

namespace rankscope::capture {
namespace {

bool readExactly(int fd, uint64_t offset, void* into, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(fd, static_cast<char*>(into) + done, bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<size_t>(got);
    }
    return true;
}

/// A running process holds its file by a lease and lets us in with the next look at it, after 200 ms at most; one that
/// is stopped does not.
int openToRead(const std::string& path) {
    constexpr auto kMost = std::chrono::seconds(2);
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 || errno != EWOULDBLOCK || std::chrono::steady_clock::now() - begin > kMost) return fd;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

bool isPlausible(const RingFileHeader& header) {
    const uint32_t cells = header.cellsPerRing;
    return std::memcmp(header.magic, kRingMagic, sizeof header.magic) == 0 && header.formatVersion == kFormatVersion &&
           header.endianMark == 0x01020304 && cells >= kRingMinCells && cells <= kRingMaxCells &&
           (cells & (cells - 1)) == 0 && header.ringCount <= kRingMaxCount;
}

}  // namespace

RingReader::RingReader(std::string path, int64_t processStartNs, uint64_t sequenceEnd,
                       const std::map<uint32_t, uint64_t>& ringEnds, LossList& losses)
    : m_path(std::move(path)), m_losses(losses), m_sequenceEnd(sequenceEnd), m_ringEnds(ringEnds) {
    m_fd = openToRead(m_path);
    if (m_fd < 0) {
        if (errno == EWOULDBLOCK)
            m_losses.add(ReaderLossKind::ring, 0, 1,
                         m_path +
                             ": its process holds it and has not let us in within 2 s (it may be stopped): calls that "
                             "are not in the capture file yet are missing");
        else if (errno != ENOENT)
            m_losses.add(ReaderLossKind::ring, 0, 1, m_path + ": cannot be opened: " + std::strerror(errno));
        return;
    }
    RingFileHeader header;
    if (!readExactly(m_fd, 0, &header, sizeof header) || !isPlausible(header)) {
        m_losses.add(ReaderLossKind::ring, 0, 1, m_path + ": byte 0: not a ring file of this version");
        return;
    }
    if (header.processStartNs != processStartNs) {
        m_losses.add(ReaderLossKind::ring, 0, 1, m_path + ": byte 0: belongs to another process than the capture file");
        return;
    }
    if (header.unmapped != 0)
        m_losses.add(
            ReaderLossKind::ring, 0, 1,
            m_path +
                ": the process keeps what it recorded last in its own memory because this file could not be "
                "held against others (on a network file system, or when somebody opened it for writing): calls "
                "of the last 10 ms, before it died or before this was read, may be missing");
    m_cellsPerRing = header.cellsPerRing;
    m_ringCount = header.ringCount;
}

RingReader::~RingReader() {
    if (m_fd >= 0) ::close(m_fd);
}

bool RingReader::next() {
    const uint64_t ringBytes = kRingHeaderBytes + uint64_t{m_cellsPerRing} * kCellBytes;
    while (m_index < m_ringCount) {
        m_ringOffset = kRingFileHeaderBytes + m_index++ * ringBytes;
        RingHeader ring;
        if (!readExactly(m_fd, m_ringOffset, &ring, sizeof ring)) {
            m_losses.add(ReaderLossKind::ring, m_ringOffset, m_ringCount - m_index + 1,
                         m_path + ": the file ends before its rings do");
            m_index = m_ringCount;
            return false;
        }
        // The process may have died between writing a block and moving the tail: then the block tells.
        const bool written = ring.pendingTail > ring.tail && ring.pendingSequence < m_sequenceEnd;
        uint64_t tail = written ? ring.pendingTail : ring.tail;
        const auto end = m_ringEnds.find(ring.threadIndex);
        if (end != m_ringEnds.end()) tail = std::max(tail, std::min(end->second, ring.head));
        if (ring.head == tail && ring.lostRecords == 0) continue;
        if (ring.head < tail || ring.head - tail > m_cellsPerRing) {
            m_losses.add(ReaderLossKind::ring, m_ringOffset, 1,
                         m_path + ": byte " + std::to_string(m_ringOffset) + ": a ring contradicts itself");
            continue;
        }
        m_threadIndex = ring.threadIndex;
        m_lostRecords = ring.lostRecords;
        m_cells.resize((ring.head - tail) * kCellBytes);
        const uint64_t cellsOffset = m_ringOffset + kRingHeaderBytes;
        const uint64_t begin = tail & (m_cellsPerRing - 1);
        const uint64_t untilEnd = (m_cellsPerRing - begin) * kCellBytes;
        const uint64_t first = untilEnd < m_cells.size() ? untilEnd : m_cells.size();
        if (!readExactly(m_fd, cellsOffset + begin * kCellBytes, m_cells.data(), first) ||
            !readExactly(m_fd, cellsOffset, m_cells.data() + first, m_cells.size() - first)) {
            m_losses.add(ReaderLossKind::ring, m_ringOffset, 1,
                         m_path + ": byte " + std::to_string(m_ringOffset) + ": a ring cannot be read");
            continue;
        }
        if (ring.pendingTail > tail && ring.pendingTail <= ring.head) m_unwritten = ring.pendingSequence;
        return true;
    }
    return false;
}

}  // namespace rankscope::capture
