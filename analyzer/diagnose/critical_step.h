// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

/// One step of a communicator, on the member that waits least: the others' steps contain its lateness, its own shows
/// what communication costs.
struct CriticalStep {
    const facts::RankSummary* rank = nullptr;
    const facts::Attribution* attribution = nullptr;
    std::vector<facts::CommTask> tasks;  // all its collectives of the step (send/recv left out), by start
    std::vector<size_t> own;             // those of the communicator, indices into tasks

    double exposedTransferNs() const;
    /// Of a task's transfer, what runs while the host keeps the device from computing: exposed whatever the task is
    /// like.
    double besideHostStallsNs(const facts::CommTask& task) const;
    double transferNs() const;
};

/// One per analysed step; steps without a collective of the communicator are left out.
std::vector<CriticalStep> criticalSteps(const job::Analysis& analysis, const facts::Communicator& communicator);

/// The same for several communicators at once (the sibling groups of one kind): the member of any of them that waits
/// least, with its own collectives on them.
std::vector<CriticalStep> criticalSteps(const job::Analysis& analysis, const std::set<int64_t>& communicators);

/// Communicators that do the same on different ranks: one role, size and spread over nodes.
struct CommunicatorClass {
    facts::CommRole role = facts::CommRole::unknown;
    const facts::Communicator* first = nullptr;
    std::set<int64_t> ids;
    std::vector<int> ranks;  // recorded members of any, by rank
};
std::vector<CommunicatorClass> communicatorClasses(const job::Analysis& analysis);

/// What a task is for: of its operation on its communicator, else of the communicator as a whole.
facts::CommRole roleOf(const job::Analysis& analysis, const facts::CommTask& task);

/// Members of the communicator that are recorded.
std::vector<int> recordedMembers(const job::Analysis& analysis, const facts::Communicator& communicator);

}  // namespace rankscope::diagnose
