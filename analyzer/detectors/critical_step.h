// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/detectors/analysis.h"

namespace rankscope::analyzer {

/// One step of a communicator, on the member that waits least: the others' steps contain its lateness, its own shows what communication costs.
struct CriticalStep {
    const RankSummary* rank = nullptr;
    const Attribution* attribution = nullptr;
    std::vector<CommTask> tasks;   // all its collectives of the step (send/recv left out), by start
    std::vector<size_t> own;       // those of the communicator, indices into tasks

    double exposedTransferNs() const;
    double transferNs() const;
};

/// One per analysed step; steps without a collective of the communicator are left out.
std::vector<CriticalStep> criticalSteps(const Analysis& analysis, const Communicator& communicator);

/// Members of the communicator that are recorded.
std::vector<int> recordedMembers(const Analysis& analysis, const Communicator& communicator);

}  // namespace rankscope::analyzer
