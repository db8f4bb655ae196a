// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "collector/ingest/communicator_set.h"

namespace rankscope::collector {

/// calls[first + i] repeats itself every `length` calls, `repeats` times, up to the last call that has a kernel.
struct CallPeriod {
    size_t first = 0;
    size_t length = 0;
    size_t repeats = 0;
};

/// The shortest period of a rank's NCCL calls by (communicator, op, bytes, peer), or as many of them as a longer gap
/// comes after, time and again, as a forward pass does after the reductions of equal layers. None when there are no
/// three repetitions, or when a call before others that have a kernel has none to take times from.
std::optional<CallPeriod> findCallPeriod(const RankSummary& summary, int32_t summaryIndex,
                                         const CommunicatorSet& communicators);

}  // namespace rankscope::collector
