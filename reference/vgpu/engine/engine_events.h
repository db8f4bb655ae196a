// SPDX-License-Identifier: Apache-2.0
// What the parts of the engine share: the kinds of events and when work ends.
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

enum EventKind : uint32_t { kStreamReady, kWorkEnds, kFlowBegins, kFlowEnds };

/// When `remaining` units of work are done at `rate` units per ns.
inline int64_t endOfWork(int64_t nowNs, double remaining, double rate) {
    return nowNs + static_cast<int64_t>(std::ceil(std::max(0.0, remaining) / rate));
}

inline bool finished(const Arena& arena, uint32_t stream, uint64_t seq) {
    return arena.streams[stream].finishedSeq.load(std::memory_order_acquire) >= seq;
}

}  // namespace rankscope::vgpu
