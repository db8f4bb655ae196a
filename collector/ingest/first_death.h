// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "collector/ingest/collective_matching.h"

namespace rankscope::collector {

/// Ranks that failed: they ended with an exit status other than 0 (a loss of kind failed_exit for each status), or
/// died. When several did, the launcher or the waiting for the first one ended most of them; a loss of kind first_death
/// names the rank to look at. It is
///   - the one whose collective does not fit its peers' (`disagreeing`), or
///   - the one that never called a collective in which all the other failed ranks that share a communicator with it
///     wait, or
///   - the one whose last sign of life is the earliest on the job clock.
/// The last sign of life of a rank that left without a farewell is its last event, which may be long before its death:
/// where that, or the clocks, leave it open which of two was first, the loss says so and names none. So it does where
/// all of them, or they and the launcher (`exitStatus`, as a shell tells it), ended by one signal that is sent from
/// outside, or died after the job's wrapper was sent one (`stopSignal`; 0: none); who was missing in a collective is
/// said beside it, as the job may have hung before.
std::vector<store::Loss> tellFailures(const JoinedRanks& ranks, std::span<const int32_t> disagreeing,
                                      int exitStatus = 0, int stopSignal = 0);

}  // namespace rankscope::collector
