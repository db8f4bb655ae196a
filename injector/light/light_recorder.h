// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/light/call_folder.h"
#include "injector/light/detail_files.h"

namespace rankscope::injector {

/// Records of one thread on their way into a file.
struct RecordBuffer {
    static constexpr size_t kBytes = 64u << 10;

    size_t used = 0;
    uint32_t records = 0;
    int64_t lastNs = 0;
    alignas(8) uint8_t bytes[kBytes] = {};

    bool hasRoom(size_t more) const noexcept { return used + more <= kBytes; }
    void add(const uint8_t* record, size_t length) noexcept;
    void clear() noexcept { used = records = 0, lastNs = 0; }
};

/// What light mode needs of memory, all zero at first: the pages of a process that never uses it do not exist.
struct LightTables {
    CallFolder folder;
    RecordBuffer lasting;
    RecordBuffer detail;
    capture::OpenRangesRecord openRanges[StepMarks::kThreads] = {};  // of writeOpenRanges()
};

/// Where light mode puts the records of rings: what lasts (communicators, texts, threads) into the capture file, all
/// else into the ring of .detail files, and calls and step marks a second time into FoldRecords. Consumer only.
class LightRecorder {
  public:
    /// The capture file.
    struct Target {
        void (*write)(void* to, uint32_t thread, const void* records, size_t bytes, uint32_t recordCount,
                      int64_t lastNs) noexcept;
        void (*countLoss)(void* to, capture::LossKind kind, uint64_t count, int64_t timeNs) noexcept;
        void* to;
        CallFolder::SlowSteps slowSteps;
        CallFolder::StepBegins stepBegins = {};
        /// With stepBegins.to: no step that begins earlier will be told. May be null.
        void (*hostIsAt)(void* to, int64_t ns) noexcept = nullptr;
    };

    constexpr LightRecorder() = default;
    LightRecorder(const LightRecorder&) = delete;
    LightRecorder& operator=(const LightRecorder&) = delete;

    /// `tables`: static memory of its own; `ringNs` above 0: how long everything is kept at full detail, at least.
    void begin(LightTables& tables, const Target& target, int64_t ringNs, const char* base,
               const capture::FileHeader& header) noexcept;

    /// A whole record, of the ring of `thread`; `ringEnd`: position in the ring behind it.
    void take(uint32_t thread, const uint8_t* record, uint64_t ringEnd) noexcept;
    /// The ring was read as far as it goes: nothing of it may be left behind here.
    void endOfRing() noexcept;

    /// Everything into the capture file; the files of the ring stay.
    void finish() noexcept;
    void abandon() noexcept;

  private:
    /// So long the time of a call on the device is waited for, however short the ring is: a collective that takes
    /// longer is one that stands still.
    static constexpr int64_t kLongestCallNs = 10'000'000'000;
    /// A file of the ring ends early before it takes more: a job of thousands of calls a second has a shorter ring.
    static constexpr uint64_t kMostFileBytes = 64u << 20;

    static void writeFold(void* self, const void* records, size_t bytes, uint32_t count, int64_t lastNs) noexcept;
    void rotate() noexcept;
    void flush() noexcept;
    void writeOpenRanges() noexcept;

    Target m_target{};
    int64_t m_ringNs = 0;
    int64_t m_newestNs = INT64_MIN;  // of the host's stamps
    int64_t m_rotateAtNs = INT64_MAX;
    uint32_t m_thread = 0;   // whose records the buffers hold
    uint64_t m_ringEnd = 0;  // behind the last of them
    LightTables* m_tables = nullptr;
    DetailFiles m_files;
};

}  // namespace rankscope::injector
