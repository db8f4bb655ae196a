// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "injector/capture_format/block_writer.h"
#include "injector/capture_format/record_traits.h"
#include "injector/record/mutex.h"
#include "injector/record/ring.h"

namespace rankscope::injector {

/// The capture file as the injector sees it: blocks go in from the writer thread and from CUPTI's threads, and what
/// cannot go in is counted by source and kind and told as soon as there is room. Locks; not for the hot path.
class CaptureSink {
  public:
    constexpr CaptureSink() = default;

    bool open(const char* path, capture::FileHeader& header, uint64_t maxBytes) noexcept;

    /// Gets the records of rings in place of the file: light mode. Called under our lock.
    struct Taker {
        /// `ringEnd`: position in the ring behind the record.
        void (*take)(void* self, uint32_t thread, const uint8_t* record, uint64_t ringEnd) noexcept;
        /// The ring was read as far as it goes: nothing of it may be left behind.
        void (*endOfRing)(void* self) noexcept;
        /// What was held back goes into the file.
        void (*finish)(void* self) noexcept;
        void* self;
    };
    /// Before the first drain. `taker.self` lives as long as the process does.
    void handTo(const Taker& taker) noexcept;
    /// Behind the last drain.
    void finishTaker() noexcept;
    /// For the taker, when it is called: records of a thread, or of none, into the file; `sink` is a CaptureSink.
    static void writeTaken(void* sink, uint32_t thread, const void* records, size_t bytes, uint32_t recordCount,
                           int64_t lastNs) noexcept;
    static void countTakersLoss(void* sink, capture::LossKind kind, uint64_t count, int64_t timeNs) noexcept;

    /// For who watches the job: what changed since the last time goes into the file (WatchCounters).
    void tellWatchers() noexcept;
    /// Where a taker counts slow steps; under our lock.
    uint64_t* slowStepCounter() noexcept { return &m_watch.slowSteps; }

    /// Records of no thread (CUPTI, metadata), whole cells, at most kMaxBlockPayloadBytes.
    bool append(capture::Source source, const void* records, size_t bytes, uint32_t recordCount,
                int64_t highWaterNs) noexcept;

    /// Moves what a ring holds into the file. Consumer only.
    void drain(Ring& ring, uint64_t& toldLost) noexcept;

    void countLoss(capture::Source source, capture::LossKind kind, uint64_t count, int64_t timeNs) noexcept;

    /// Writes a LossRecord for every counted loss that was not told yet.
    void tellLosses() noexcept;

    void close() noexcept;
    /// In a forked child.
    void abandon() noexcept;
    bool isOpen() const noexcept { return m_writer.isOpen(); }
    /// Newest time of any record so far.
    int64_t highWaterNs() const noexcept { return m_highWaterNs; }
    /// Records that came out of rings so far.
    uint64_t ringRecords() const noexcept { return m_ringRecords; }
    uint64_t bytesWritten() const noexcept { return m_writer.bytesWritten(); }

  private:
    struct Loss {
        uint64_t count = 0;
        int64_t firstNs = 0;
        int64_t lastNs = 0;
    };
    static constexpr size_t kSources = 6;
    static constexpr size_t kKinds = static_cast<size_t>(capture::LossKind::unknownStreams) + 1;

    void countLossLocked(capture::Source source, capture::LossKind kind, uint64_t count, int64_t timeNs) noexcept;
    void tellLossesLocked() noexcept;
    void tellWatchersLocked() noexcept;
    void handOver(Ring& ring, uint64_t tail, uint64_t head) noexcept;
    void noteResult(capture::AppendResult result, capture::Source source, uint32_t records, int64_t timeNs) noexcept;

    Mutex m_mutex;
    capture::BlockWriter m_writer;
    int64_t m_highWaterNs = 0;
    uint64_t m_ringRecords = 0;
    capture::WatchCounters m_watch{};
    capture::WatchCounters m_toldWatch{};
    Taker m_taker{};
    /// One record of a ring, whole. Not on the stack: _exit() in a handler of the job's may have a small one.
    alignas(8) uint8_t m_taken[capture::kMaxRecordCells * capture::kCellBytes] = {};
    Loss m_losses[kSources][kKinds] = {};
};

}  // namespace rankscope::injector
