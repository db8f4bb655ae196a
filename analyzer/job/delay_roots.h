// SPDX-License-Identifier: Apache-2.0
// Who is to blame for each wait of a job (delays.h), as parts that several processes can find.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "analyzer/job/delays.h"

namespace rankscope::job {

/// A rank whose work was waited for, with its share of the wait.
struct Root {
    int rank = -1;
    double share = 0;
};

/// Of one wait; less than 1 in all where the network was waited for.
using Roots = std::vector<Root>;

/// Of every `parts`-th wait of the replay from number `part` on, in the order of the last arrivals' tasks. None without
/// a replay.
std::vector<Roots> shareOfRoots(const replay::ReplayModel& replay, size_t part, size_t parts);

/// As delaysOf() of delays.h: number 0 of `parts` shares is found here, `others` is asked for each of the rest, by its
/// number.
Delays delaysOf(const RecordedJob& job, const replay::ReplayModel& replay, size_t parts,
                const std::function<std::vector<Roots>(size_t)>& others);

}  // namespace rankscope::job
