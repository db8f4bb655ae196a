// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

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

/// One per analysed step, on that member of any of the communicators (sibling groups of one kind) that waits least,
/// with its own collectives on them; steps without one are left out.
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

/// By how much the step is shorter at most when its task i takes newTransferNs[i] instead of its recorded transfer.
/// Communication that follows on communication is one busy period of the network: what its messages gain moves up the
/// later ones and shortens the period's exposed part, less what the last message still exposes by itself.
double savedAtMost(const CriticalStep& step, const std::vector<double>& newTransferNs);

/// The recorded transfers of the step's tasks, to be changed.
std::vector<double> transfersOf(const CriticalStep& step);

/// The one of the step whose window the finding names (setTypicalStep); the first where it names none.
const CriticalStep& shownStep(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                              const job::Finding& finding);

/// Adds the `most` of `candidates` (indices into step.tasks) that are exposed longest to the evidence, in order of
/// time: "`what`, exposed for 1.2 ms".
void addExposedRows(const CriticalStep& step, std::vector<size_t> candidates, size_t most, const std::string& what,
                    job::Finding& finding);

/// Adds those of a probe's rows (LinkProbe::keep) that lie in the finding's window; where none does, the first.
void addRowsOfWindow(const job::LinkProbe& probe, job::Finding& finding);

}  // namespace rankscope::diagnose
