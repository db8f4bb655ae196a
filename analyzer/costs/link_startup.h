// SPDX-License-Identifier: Apache-2.0
// The start-up of a link that tells none.
#pragma once

#include <optional>

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {

/// The start-up per hop of a link that tells none.
double unknownAlphaNs(bool betweenNodes);

/// linkModel() with a start-up in any case.
std::optional<LinkModel> linkWithStartup(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// What measured times are held against: what the job reached holds for other sizes with the start-up that they are
/// known to have, since none would make small messages look slow. What a user left out stays open.
std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

struct LinkStartupThresholds {
    // Start-up per hop where none is known. Between nodes NCCL's tables end near it (src/graph/tuning.cc of 2.28,
    // network by Simple: 14 us, and the switches); inside one it is PCIe's 5.7 us there with its part of what a
    // collective costs beside its hops.
    static constexpr double kUnknownAlphaNs = 20'000;
    static constexpr double kUnknownInsideAlphaNs = 8'000;
};

}  // namespace rankscope::costs
