// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// What kind of events to look for.
enum class EventClass : uint8_t { any, compute, communication, memory, ncclCalls, cudaCalls, nvtx, steps };

bool belongs(EventClass wanted, EventTable table) noexcept;  ///< some event of the table can be of that class
bool belongs(EventClass wanted, EventTable table, EventKind kind) noexcept;

struct DurationBounds {
    int64_t atLeastNs = 0;
    int64_t atMostNs = INT64_MAX;

    bool contains(int64_t ns) const noexcept { return atLeastNs <= ns && ns <= atMostNs; }
    bool operator==(const DurationBounds&) const = default;
};

/// First and last rank, both included.
using RankInterval = std::pair<int32_t, int32_t>;

template <typename Value>
struct Parsed {
    Value value{};
    std::string error;  ///< for people; empty when the text was understood
};

/// "> 1 ms", ">= 10 us", "< 5 ms", "1 ms .. 2 ms", "1 ms" (at least); nothing bounds nothing. Units: ns, us, ms, s,
/// min.
Parsed<DurationBounds> parseDuration(std::string_view text);
/// "3", "0-7, 12"; nothing means all ranks.
Parsed<std::vector<RankInterval>> parseRanks(std::string_view text);

}  // namespace rankscope::gui
