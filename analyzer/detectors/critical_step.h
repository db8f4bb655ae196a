// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "analyzer/detectors/analysis.h"

namespace rankscope::analyzer {

/// One step of a communicator, on the member that waits least: the others' steps contain its lateness, its own shows
/// what communication costs.
struct CriticalStep {
    const RankSummary* rank = nullptr;
    const Attribution* attribution = nullptr;
    std::vector<CommTask> tasks;  // all its collectives of the step (send/recv left out), by start
    std::vector<size_t> own;      // those of the communicator, indices into tasks

    double exposedTransferNs() const;
    /// Of a task's transfer, what runs while the host keeps the device from computing: exposed whatever the task is
    /// like.
    double besideHostStallsNs(const CommTask& task) const;
    double transferNs() const;
};

/// One per analysed step; steps without a collective of the communicator are left out.
std::vector<CriticalStep> criticalSteps(const Analysis& analysis, const Communicator& communicator);

/// The same for several communicators at once (the sibling groups of one kind): the member of any of them that waits
/// least, with its own collectives on them.
std::vector<CriticalStep> criticalSteps(const Analysis& analysis, const std::set<int64_t>& communicators);

/// Communicators that do the same on different ranks: one role, size and spread over nodes.
struct CommunicatorClass {
    CommRole role = CommRole::unknown;
    const Communicator* first = nullptr;
    std::set<int64_t> ids;
    std::vector<int> ranks;  // recorded members of any, by rank
};
std::vector<CommunicatorClass> communicatorClasses(const Analysis& analysis);

/// What a task is for: of its operation on its communicator, else of the communicator as a whole.
CommRole roleOf(const Analysis& analysis, const CommTask& task);

/// Members of the communicator that are recorded.
std::vector<int> recordedMembers(const Analysis& analysis, const Communicator& communicator);

}  // namespace rankscope::analyzer
