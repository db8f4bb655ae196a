// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "injector/capture_format/own_file.h"
#include "injector/record/mutex.h"
#include "injector/record/ring.h"

namespace rankscope::injector {

enum class RingState : uint32_t { free = 0, owned = 1, ended = 2 };

/// The .ring file and its rings. Space is reserved before it is mapped, so that a full disk means "no ring" and never
/// SIGBUS. A forked child does not inherit the mapping.
class RingFile {
  public:
    static constexpr uint32_t kMaxRings = 512;

    constexpr RingFile() = default;
    RingFile(const RingFile&) = delete;
    RingFile& operator=(const RingFile&) = delete;

    bool open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs) noexcept;

    /// A ring for the calling thread: a drained one of a thread that ended, or a new one. Null when neither can be had.
    Ring* acquire(uint32_t threadIndex, int32_t tid) noexcept;

    /// The owning thread ends; the consumer drains the ring once more and frees it.
    static void retire(Ring& ring) noexcept;

    /// For the consumer: rings made so far. ring(i) is valid below it.
    uint32_t count() const noexcept { return m_count.load(std::memory_order_acquire); }
    Ring& ring(uint32_t index) noexcept { return m_rings[index]; }
    static RingState state(const Ring& ring) noexcept;
    static void free(Ring& ring) noexcept;

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

    capture::OwnFile m_file;
    uint32_t m_cellsPerRing = 0;
    capture::RingFileHeader* m_header = nullptr;
    Mutex m_mutex;
    std::atomic<uint32_t> m_count{0};
    Ring m_rings[kMaxRings] = {};
};

}  // namespace rankscope::injector
