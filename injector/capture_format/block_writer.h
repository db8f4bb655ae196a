// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/own_file.h"
#include "injector/capture_format/records.h"
#include "injector/capture_format/watch_counters.h"

namespace rankscope::capture {

/// What the caller knows about a block; the writer adds sequence and checksums.
struct BlockInfo {
    uint32_t threadIndex = kNoThread;
    Source source = Source::none;
    uint32_t recordCount = 0;
    uint64_t lostRecords = 0;
    int64_t highWaterNs = 0;
    uint64_t ringEnd = 0;  ///< BlockHeader::ringEnd
    bool urgent = false;   ///< about the capture itself (losses, the end): may use the reserve kept for it
};

enum class AppendResult : uint8_t { ok, sizeCap, ioError };

/// Appends blocks to one capture file. Owns the file descriptor. Not thread-safe: the owner holds a lock around it.
/// Never throws, never allocates. A block that cannot be written leaves the file as it was, and the next one is tried
/// again.
class BlockWriter {
  public:
    constexpr BlockWriter() = default;
    BlockWriter(const BlockWriter&) = delete;
    BlockWriter& operator=(const BlockWriter&) = delete;

    /// Creates the file (O_EXCL), fills in magic, version and checksum of `header` and writes it. False with errno set
    /// when refused.
    bool open(const char* path, FileHeader& header, uint64_t maxBytes) noexcept;

    /// The payload comes in two parts, because a ring may wrap around. Both must be multiples of kCellBytes.
    AppendResult append(const BlockInfo& info, const void* first, size_t firstBytes, const void* second = nullptr,
                        size_t secondBytes = 0) noexcept;

    /// Writes them over those in the file's first page; false when that fails.
    bool tell(const WatchCounters& counters) noexcept;

    /// Gives reserved space back and closes.
    void close() noexcept;

    /// Closes and deletes the file, if there is one.
    void remove() noexcept;

    /// Forgets the file without touching it: in a forked child it belongs to the parent.
    void abandon() noexcept;

    bool isOpen() const noexcept { return m_file.isOpen(); }
    uint32_t nextSequence() const noexcept { return m_sequence; }
    uint64_t bytesWritten() const noexcept { return m_offset; }

  private:
    bool reserve(int fd, uint64_t end, bool urgent) noexcept;

    OwnFile m_file;
    bool m_canReserve = true;
    uint32_t m_sequence = 0;
    uint64_t m_offset = 0;
    uint64_t m_reservedEnd = 0;
    uint64_t m_maxBytes = 0;
};

}  // namespace rankscope::capture
