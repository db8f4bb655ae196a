// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "injector/capture_format/own_file.h"
#include "injector/record/mutex.h"
#include "injector/record/ring.h"

namespace rankscope::injector {

/// The .ring file and its rings, which outlive a process that is killed. A page of a mapped file that is gone ends the
/// process by SIGBUS, which no recording is worth. So the rings are mapped only while the kernel holds off whoever
/// could cut the file off (FileLease), and otherwise in memory of our own: then what the writer has not yet taken out
/// of them dies with the process.
/// - space is reserved before it is mapped, so that a full disk means "no ring";
/// - the file's mode lets nobody write it, so that a slip of the user's is refused at once;
/// - one who opens it for writing or truncates it waits until the rings have moved into memory of our own, at the same
///   addresses, with what is in them (look); they go back when nobody else has it open any more (tend);
/// - a reader is let in without a move, if it is gone with the next look, which takes the lease again;
/// - it is mapped on file systems alone that are known to keep what was reserved, and where there are leases.
/// A forked child does not inherit the mapping.
class RingFile {
  public:
    static constexpr uint32_t kMaxRings = 512;

    constexpr RingFile() = default;
    RingFile(const RingFile&) = delete;
    RingFile& operator=(const RingFile&) = delete;

    /// Makes the file. The rings are in memory of our own until map().
    bool open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs) noexcept;

    /// Before the first ring: they are in the file from now on, if it can be kept. `tid`: see FileLease::take.
    void map(int32_t tid) noexcept;

    /// A ring for the calling thread: a drained one of a thread that ended, or a new one. Null when neither can be had.
    Ring* acquire(uint32_t threadIndex, int32_t tid) noexcept;

    /// The owning thread ends; the consumer drains the ring once more and frees it.
    static void retire(Ring& ring) noexcept { ring.setState(Ring::State::ended); }

    /// For the consumer: rings made so far. ring(i) is valid below it.
    uint32_t count() const noexcept { return m_count.load(std::memory_order_acquire); }
    Ring& ring(uint32_t index) noexcept { return m_rings[index]; }
    static void free(Ring& ring) noexcept;

    /// For the consumer, before it looks at the rings, in each round: whether the file is still ours alone. True when
    /// what was in the rings is lost.
    bool look() noexcept;
    /// For the consumer, now and then: rings that have left the file go back when it can be held again; until then it
    /// says that they have, also when somebody has cut it off.
    void tend() noexcept;
    /// Whether the rings are in the file.
    bool isMapped() const noexcept { return m_isMapped.load(std::memory_order_relaxed); }

    /// After a clean end.
    void closeAndUnlink() noexcept;
    /// In a forked child: the file is the parent's.
    void abandon() noexcept;

    bool isOpen() const noexcept { return m_file.isOpen(); }

  private:
    bool addRing() noexcept;
    void writeHeader(int fd) noexcept;
    uint64_t offsetOfRing(uint32_t index) const noexcept;
    void enter() noexcept;
    bool leave() noexcept;
    void stopWriters() noexcept;
    enum class From : uint8_t { own, file };
    bool move(Ring& ring, From from, void* memory, bool& isCut) noexcept;
    bool moveAll(From from, int fd, bool& isCut) noexcept;

    capture::OwnFile m_file;
    std::atomic<bool> m_isMapped{false};
    bool m_isLent = false;
    bool m_isGone = false;
    bool m_isHeaderTold = false;  ///< the file says what m_header does
    int32_t m_tid = 0;            ///< 0: the file is not to be mapped
    capture::RingFileHeader m_header{};
    Mutex m_mutex;
    std::atomic<uint32_t> m_count{0};
    Ring m_rings[kMaxRings] = {};
};

}  // namespace rankscope::injector
