// SPDX-License-Identifier: Apache-2.0
// How much of the usual work a rank has in each kernel of its layers, with the faults uneven_work and stage_imbalance.
#pragma once

#include "reference/workloads/expert_routing.h"
#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// 1 without such a fault. With uneven_work the mean over the replicas is 1; all ranks of a replica have the same data.
/// A model with experts has unequal numbers of tokens for them instead.
double workShare(const Scenario& scenario, int rank);

/// One expert is wanted so much that the experts of its rank together have uneven_work's factor times the mean.
/// Balanced without the fault.
ExpertSkew expertSkew(const Scenario& scenario);

}  // namespace rankscope::reference
