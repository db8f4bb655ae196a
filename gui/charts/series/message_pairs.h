// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "gui/charts/series/chart_job.h"
#include "gui/charts/series/chart_target.h"

namespace rankscope::gui {

/// The sends of one rank to one other, all communicators together.
struct MessagePair {
    static constexpr size_t kFirstMessages = 8;

    int64_t count = 0;
    double bytes = 0;
    int64_t largestBytes = -1;
    ChartTarget largest;  ///< the largest message, on the sender
    std::vector<TimeRange>
        first;  ///< from arrival of the sender to its end, of the first messages of its first communicator
};

using MessagePairs = std::map<std::pair<int32_t, int32_t>, MessagePair>;  // by sender and receiver

/// Of ranks the job knows; at most kMostPairs. One pass over the table p2p.
inline constexpr size_t kMostPairs = 2'000'000;
MessagePairs readMessagePairs(store::TraceReader& reader, const ChartJob& job);

}  // namespace rankscope::gui
