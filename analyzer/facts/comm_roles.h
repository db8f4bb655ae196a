// SPDX-License-Identifier: Apache-2.0
// From how a communicator is used to what it is used for.
#pragma once

#include "analyzer/facts/comm_usage.h"
#include "analyzer/facts/layout.h"

namespace rankscope::facts {

/// What the collectives of a communicator say about the job.
struct RoleEvidence {
    std::map<store::Op, CommUse> uses;
    std::optional<int> zero;  // stage that these operations speak for
    double zeroConfidence = 0;
    bool sequenceParallel = false;
};

RoleEvidence rolesOf(const CommUsage& usage);

}  // namespace rankscope::facts
