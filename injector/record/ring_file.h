// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "injector/capture_format/own_file.h"
#include "injector/record/mutex.h"
#include "injector/record/ring.h"

namespace rankscope::injector {

enum class RingState : uint32_t { free = 0, owned = 1, ended = 2 };

/// The .ring file and its rings, which outlive a process that is killed. A page of a mapped file that is gone ends the
/// process by SIGBUS, which no recording is worth:
/// - space is reserved before it is mapped, so that a full disk means "no ring";
/// - nobody may write the file, so that neither others nor a slip of the user's cut it off;
/// - where a server may forget it, on network file systems, nothing is mapped: the rings are in memory of our own, and
///   what the writer has not yet taken out of them dies with the process;
/// - root may cut it off all the same: the writer looks for that in each round, and leaves the file (leaveIfCut).
/// A forked child does not inherit the mapping.
class RingFile {
  public:
    static constexpr uint32_t kMaxRings = 512;

    constexpr RingFile() = default;
    RingFile(const RingFile&) = delete;
    RingFile& operator=(const RingFile&) = delete;

    /// `mapped`: false has the rings in our own memory on any file system.
    bool open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs, bool mapped) noexcept;

    /// A ring for the calling thread: a drained one of a thread that ended, or a new one. Null when neither can be had.
    Ring* acquire(uint32_t threadIndex, int32_t tid) noexcept;

    /// The owning thread ends; the consumer drains the ring once more and frees it.
    static void retire(Ring& ring) noexcept;

    /// For the consumer: rings made so far. ring(i) is valid below it.
    uint32_t count() const noexcept { return m_count.load(std::memory_order_acquire); }
    Ring& ring(uint32_t index) noexcept { return m_rings[index]; }
    static RingState state(const Ring& ring) noexcept;
    static void free(Ring& ring) noexcept;

    /// For the consumer, before it looks at the rings. True when the file is no longer whole: the rings are empty
    /// memory from now on, and nothing more is to be recorded.
    bool leaveIfCut() noexcept;
    /// For the consumer, after a round: tells who watches the job of rings that are not in the file.
    void tellWatchers() noexcept;
    bool isMapped() const noexcept { return m_isMapped; }

    /// After a clean end.
    void closeAndUnlink() noexcept;
    /// In a forked child: the file is the parent's.
    void abandon() noexcept;

    bool isOpen() const noexcept { return m_file.isOpen(); }
    /// In the mapping, which stays until the process ends; null without one.
    uint64_t* progressCounter() noexcept { return m_header == nullptr ? nullptr : &m_header->progress; }

    uint64_t* slowStepCounter() noexcept { return m_header == nullptr ? nullptr : &m_header->slowSteps; }

  private:
    bool addRing() noexcept;
    void* reserve(uint64_t offset, uint64_t bytes) noexcept;

    capture::OwnFile m_file;
    bool m_isMapped = true;
    uint32_t m_cellsPerRing = 0;
    capture::RingFileHeader* m_header = nullptr;
    Mutex m_mutex;
    std::atomic<uint32_t> m_count{0};
    Ring m_rings[kMaxRings] = {};
};

}  // namespace rankscope::injector
