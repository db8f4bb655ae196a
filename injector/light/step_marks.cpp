// SPDX-License-Identifier: Apache-2.0
#include "injector/light/step_marks.h"

#include <cstring>

#include "injector/text.h"

namespace rankscope::injector {

void StepMarks::noteText(uint64_t id, const char* text, size_t bytes) noexcept {
    // The collector asks more closely (collector/ingest/step_names.cpp); what is kept needlessly costs some bytes only.
    const bool isPart = containsWord(text, bytes, "optimizer") || containsWord(text, bytes, "scheduler") ||
                        containsWord(text, bytes, "dataloader");
    if (!isPart && (containsWord(text, bytes, "step") || containsWord(text, bytes, "iter"))) m_ids[id % kIds] = id;
}

bool StepMarks::push(uint32_t thread, uint64_t name, bool isOwnDomain) noexcept {
    Stack& stack = m_stacks[thread % kThreads];
    const bool isKept = isOwnDomain && (isStep(name) || stack.depth == 0);
    stack.kept = stack.kept << 1 | static_cast<uint64_t>(isKept);
    ++stack.depth;
    stack.thread = thread;
    return isKept;
}

bool StepMarks::pop(uint32_t thread) noexcept {
    Stack& stack = m_stacks[thread % kThreads];
    if (stack.depth == 0) return false;
    --stack.depth;
    const bool isKept = (stack.kept & 1) != 0;
    stack.kept >>= 1;
    return isKept;
}

bool StepMarks::start(uint64_t name, uint64_t rangeId) noexcept {
    if (!isStep(name) || rangeId == 0) return false;
    m_open[(rangeId >> 1) % kOpen] = rangeId;  // the lowest bit is a flag (nvtx/ranges.cpp)
    return true;
}

bool StepMarks::end(uint64_t rangeId) noexcept {
    uint64_t& open = m_open[(rangeId >> 1) % kOpen];
    if (rangeId == 0 || open != rangeId) return false;
    open = 0;
    return true;
}

bool StepMarks::openRanges(size_t place, capture::OpenRangesRecord& record) const noexcept {
    const Stack& stack = m_stacks[place];
    if (stack.depth == 0) return false;
    record = {};
    record.head = {capture::RecordType::openRanges, 1, 0};
    record.threadIndex = stack.thread;
    record.kept = stack.kept;
    record.depth = stack.depth;
    return true;
}

void StepMarks::clear() noexcept {
    std::memset(m_ids, 0, sizeof m_ids);
    std::memset(static_cast<void*>(m_stacks), 0, sizeof m_stacks);
    std::memset(m_open, 0, sizeof m_open);
}

}  // namespace rankscope::injector
