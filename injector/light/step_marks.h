// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/capture_format/records.h"

namespace rankscope::injector {

/// Tells which ranges of the job mark its steps, by the ids of their texts, and which pop ends one of them. Consumer
/// only.
class StepMarks {
  public:
    constexpr StepMarks() = default;

    /// A text that ranges may be called by.
    void noteText(uint64_t id, const char* text, size_t bytes) noexcept;

    bool isStep(uint64_t name) const noexcept { return name != 0 && m_ids[name % kIds] == name; }

    /// Ranges of a thread are pushed and popped like a stack: whether this one is kept. Where a thread has no step
    /// open, its outermost ranges are: a loop may name its steps differently.
    bool push(uint32_t thread, uint64_t name, bool isOwnDomain) noexcept;
    uint32_t depth(uint32_t thread) const noexcept { return m_stacks[thread % kThreads].depth; }
    bool pop(uint32_t thread) noexcept;

    /// Ranges that one thread starts and another may end: those that mark steps are kept.
    bool start(uint64_t name, uint64_t rangeId) noexcept;
    bool end(uint64_t rangeId) noexcept;

    /// How many threads to ask openRanges() about, by their places; false: none is open there.
    static constexpr size_t kThreads = 512;  // as many as there are rings (RingFile::kMaxRings)
    bool openRanges(size_t place, capture::OpenRangesRecord& record) const noexcept;

    void clear() noexcept;

  private:
    static constexpr size_t kIds = 4096;  // a later text takes the place of an earlier one: names of old steps
    static constexpr size_t kOpen = 64;
    /// Of the innermost 64 ranges of a thread, whether they are kept.
    struct Stack {
        uint64_t kept = 0;
        uint32_t depth = 0;
        uint32_t thread = 0;
    };

    uint64_t m_ids[kIds] = {};
    Stack m_stacks[kThreads] = {};
    uint64_t m_open[kOpen] = {};  // range ids
};

}  // namespace rankscope::injector
