// SPDX-License-Identifier: Apache-2.0
// What phase 1 keeps of a rank: small enough for all ranks to be in memory at once.
#pragma once

#include <string_view>
#include <vector>

#include "analyzer/timeline/attribution.h"
#include "analyzer/timeline/rank_events.h"

namespace rankscope::analyzer {

/// Kernels of one key in one analysed step of one rank.
struct KernelStatistics {
    KernelKey key;
    int step = 0;  // its number
    int32_t count = 0;
    int64_t totalNs = 0;
    double medianNs = 0;
};

enum class IdleCause : uint8_t { other, blockingCall, lateLaunch, allocator, input, dependency };
std::string_view toText(IdleCause cause);

struct IdleGap {
    int step = 0;  // its number
    int64_t startNs = 0;
    int64_t durNs = 0;
    IdleCause cause = IdleCause::other;
};

struct RankSummary {
    int rank = 0;
    std::vector<Attribution> steps;         // one per RankFacts::steps
    std::vector<KernelStatistics> kernels;  // by (key, step)
    std::vector<CommTask> communication;    // by start
    std::vector<IdleGap> idleGaps;          // those worth a row: kShortestGapNs and longer
    std::vector<int64_t> idleByCauseNs;     // of analysed steps, by IdleCause
    int32_t computeStreamId = 0;            // the stream with most compute time

    static constexpr int64_t kShortestGapNs = 10'000;  // shorter gaps are launch gaps between dependent kernels; summed up, not stored
};

/// Phase 1 for one rank. `events` is taken apart.
RankSummary summarize(RankEvents events, const RankFacts& facts);

}  // namespace rankscope::analyzer
