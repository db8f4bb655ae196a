// SPDX-License-Identifier: Apache-2.0
// How far the clocks of imported ranks are apart, told before anything is matched by time: who takes part in a
// collective leaves it together, so that the ends of calls in the same order differ by the clocks alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/importers/clock_line.h"
#include "collector/importers/communicator_inference.h"

namespace rankscope::collector {

struct ClockOffset {
    ClockLine line;       ///< from its clock to that of the lowest rank that it is tied to
    int64_t boundNs = 0;  ///< four of five ends lie within it
    size_t samples = 0;   ///< collectives; 0: nothing tells
    size_t against = 0;   ///< position of that lowest rank
    size_t machine = 0;   ///< of those that have the host's name: clocks of one that differ are of two machines
    /// Its ends drift as those of two clocks do, and nothing tells that it is so: not to be moved.
    bool doubted = false;
};

/// One for each of `ranks`, whose hosts are told in `hosts`, empty where nothing does. Clocks of one host are one,
/// those of several are compared by the order of the operations: in the groups that the traces tell, else in all that
/// agree. Where neither hosts nor groups are told, an offset is believed if nothing but a common collective explains
/// what is seen: the ends keep their distance, or move apart evenly by no more than two quartz clocks do, and on one
/// side all ranks wait for one that is on the other, now longer and now shorter.
std::vector<ClockOffset> clockOffsets(const std::vector<RankCalls>& ranks, const std::vector<std::string>& hosts);

}  // namespace rankscope::collector
