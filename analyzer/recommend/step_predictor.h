// SPDX-License-Identifier: Apache-2.0
// The judge of every recommendation: what the whole step gains or loses by a change. A setting that helps one
// collective and hurts the job does not pass.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/edits/what_if.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/recommend/job_change.h"

namespace rankscope::recommend {

class TrialHelpers;

/// How jobs are played.
struct Playing {
    unsigned workers = 1;             // threads; 0: one per core
    std::function<void()> played;     // called with each job that is, by one thread at a time; may be empty
    TrialHelpers* helpers = nullptr;  // processes that play beside this one; nullptr: none
};

struct StepPredictor {
    std::string name;       // "replay of the whole step, 0.4 % off"
    bool replayed = false;  // of the whole step, all ranks; else a first estimate: good enough to try, not to claim
    double errorNs = 0;     // by how much it misses the step as it is: what it says of a change is known no better
    /// Step time saved, per analysed step in ns; negative where the step gets longer.
    std::function<std::vector<double>(const TransferScale&)> scaledTransfers;
    /// Of a change as `rankscope whatif` spells it; nothing where it cannot be made to this job. Empty without a
    /// replay.
    std::function<std::optional<edits::SideGain>(const std::string& change)> edited;
    /// The savings alone of several changes, each by itself: they are found much faster than how sure they are.
    std::function<std::vector<std::optional<double>>(const std::vector<std::string>& changes)> expected;

    /// edited() may be asked for these next: processes beside this one play them together. Without such processes
    /// nothing happens. Empty without a replay.
    std::function<void(const std::vector<std::string>& changes)> playAhead;

    /// The judge of the job as it is after a change: all it says comes on top of that. Nothing where the change cannot
    /// be made. Empty without a replay.
    std::function<std::optional<StepPredictor>(const JobChange& change)> after;
    edits::SideGain gained;                   // by that change, on top of those before it
    edits::SideGain total;                    // by all changes so far, played together
    std::function<MessageList()> messages;    // collectives of the job so far; empty: as recorded
    std::optional<facts::Pipeline> pipeline;  // of the job so far, where a change was to it
};

/// By the task graph of all ranks, changed and played again. `analysis` must outlive it. Nothing without a replay. What
/// a change gains up to `noiseNs` a step is chance, and told without an interval.
std::optional<StepPredictor> replayPredictor(const job::Analysis& analysis, double noiseNs, Playing playing);

/// For runs that cannot be replayed (calls or ranks that were not recorded, lost events), whose transfers alone can be
/// judged, and only to be tried: the exposed part of each busy period of the network on the rank that waits least
/// (savedAtMost() of diagnose/critical_step.h). What gets slower counts in full beyond the pause behind it.
StepPredictor busyPeriodPredictor(const job::Analysis& analysis);

}  // namespace rankscope::recommend
