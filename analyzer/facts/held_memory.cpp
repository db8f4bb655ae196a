// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/held_memory.h"

#include <algorithm>

#include "collector/store/reader.h"

namespace rankscope::facts {

bool HeldMemory::take(std::string_view call, bool frees, std::optional<int64_t> bytes) {
    constexpr int64_t kMost = int64_t{1} << 50;  // a damaged file may claim any number: sums must not overflow
    // cudaMallocHost, cudaHostAlloc, cudaFreeHost. A free of what was held before the recording frees nothing that is
    // counted.
    if (call.find("Host") != std::string_view::npos || !bytes || *bytes <= 0) return false;
    const int64_t change = std::min(*bytes, kMost);
    m_bytes = std::clamp<int64_t>(m_bytes + (frees ? -change : change), 0, INT64_MAX / 2);
    m_peak = std::max(m_peak, m_bytes);
    return true;
}

MemoryPeaks readMemoryPeaks(store::TraceReader& trace, int rank) {
    HeldMemory held;
    if (!trace.extent<store::Allocation>(rank).empty())
        trace.forEach<store::Allocation>(
            rank, [&](const store::Allocation& call) { held.take(trace.string(call.nameId), call.free, call.bytes); });
    MemoryPeaks peaks{.held = held.peak()};
    if (trace.extent<store::Counter>(rank).empty()) return peaks;
    trace.forEach<store::Counter>(rank, [&](const store::Counter& sample) {
        const std::string_view name = trace.string(sample.nameId);
        if (name.starts_with("memory ") && name.find(" on device ") != std::string_view::npos &&
            name.ends_with("[bytes]"))
            peaks.sampled = std::max(peaks.sampled, static_cast<int64_t>(sample.value));
    });
    return peaks;
}

}  // namespace rankscope::facts
