// SPDX-License-Identifier: Apache-2.0
// A job as it would run after some changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/trial_graph.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/replay/critical_path.h"

namespace rankscope::edits {

/// The graph of a job after changes.
struct ChangedJob {
    TaskGraph graph;
    EditEffect effect;
    std::vector<double> stepsNs;  // of the analysed steps, at equal tokens
};

/// Means over the analysed steps, ns per step: how long a rank's kernels run, and how long its NCCL kernels wait for
/// others.
struct RankTimes {
    int rank = 0;
    double computeNs = 0;
    double waitingNs = 0;
    double transferNs = 0;
};

struct WhatIf {
    double measuredStepNs = 0;
    double replayedStepNs = 0;  // unchanged
    double replayError = 0;     // share of the measured step
    double changedStepNs = 0;   // at equal tokens
    double typicalStepNs =
        0;  // the step that a report gives and shares are of: the median one; where rare steps alone gain, the mean one
    double tokens = 1;  // tokens of a changed step / tokens of a step as recorded, on as many ranks
    double replicas =
        1;  // ranks, and with them tokens of a step, as a multiple of those recorded: not counted in `saving`
    facts::Estimate savingNs;
    std::vector<RankTimes> before, after;  // by rank
    std::vector<replay::PathShare> pathBefore, pathAfter;
    std::vector<std::string> assumed;
};

/// Steps at equal tokens, ns, of the graph of a changed job that is played as `schedule`. `now`: those of the same
/// graph with its own durations, which steps that stand for all become longer or shorter from.
std::vector<double> stepsNs(const Analysis& analysis, const TaskGraph& graph, const Schedule& schedule,
                            const EditEffect& effect, const std::vector<double>& now);

/// Unchanged.
ChangedJob unchangedJob(const Analysis& analysis);

/// Adds a change to those made so far. `from`: as TrialGraph has it. Throws EditError and leaves `job` in any state.
void change(ChangedJob& job, const Edit& edit, const Analysis& analysis, const TrialGraph* from = nullptr);

/// A job that many changes are tried on and that stays as it is.
class TrialJob {
  public:
    /// Unchanged: without a copy of its graph. `analysis` must outlive it.
    explicit TrialJob(const Analysis& analysis);
    /// `of`: what the changes were made of; nullptr: that is not known. What was read of the job without changes is not
    /// read again where times alone have changed.
    TrialJob(ChangedJob job, const Analysis& analysis, std::shared_ptr<const TrialJob> of = nullptr);
    TrialJob(const TrialJob&) = delete;
    TrialJob& operator=(const TrialJob&) = delete;

    const TaskGraph& graph() const { return m_trial.graph(); }
    const EditEffect& effect() const { return m_job.effect; }
    const std::vector<double>& stepsNs() const { return m_job.stepsNs; }
    /// Reads the pipeline, where the job has one, before a change asks for it. Throws EditError as PipelineParts does.
    void readPipeline() const;
    /// What change() makes of it, one edit after the other and at least one, taken with `outlook`. Throws EditError.
    ChangedJob with(const Edits& edits, Outlook outlook) const;

  private:
    bool hasNoChanges() const { return &m_trial.graph() == &m_analysis.replay.graph; }
    /// Of the job without changes; nullptr: it is not known.
    const TrialGraph* withoutChanges() const;

    const Analysis& m_analysis;
    ChangedJob m_job;                      // unchanged: without the graph
    std::shared_ptr<const TrialJob> m_of;  // the job without changes; none: it is this one, or not known
    std::optional<Analysis> m_present;     // none: the layout is the recorded one
    TrialGraph m_trial;
};

/// By how much the mean step of `after` is faster than that of `before`, ChangedJob::stepsNs.
facts::Estimate saving(const std::vector<double>& before, const std::vector<double>& after);

/// The changes that this run can be asked for, with their syntax and help, and why it cannot be asked for the others.
std::string listEdits(const Analysis& analysis);

/// All changes, one after the other. The run must have a replay. Throws EditError.
WhatIf whatIf(const Analysis& analysis, const Edits& edits);

// What a change gains, with an interval: the one answer that findings, `rankscope whatif` and `rankscope recommend`
// give, each of a job that TrialJob or change() has made.

/// Step times of the analysed steps at equal tokens, ns: with every transfer as expected, and at the ends of what is
/// known of another choice of NCCL's.
struct StepSides {
    std::vector<double> expected, pessimistic, optimistic;
    std::map<Outlook, std::vector<double>>
        outlooks;             // with all changes so far as each takes them; empty: the trace leaves nothing open
    bool unplayable = false;  // an outlook cannot be played: what it would gain is unknown
    double chanceNs = 0;      // by which a run of it may miss what is expected
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(StepSides& value, const Visit& visit) {
    auto& [expected, pessimistic, optimistic, outlooks, unplayable, chanceNs] = value;
    visit(expected, pessimistic, optimistic, outlooks, unplayable, chanceNs);
}

/// Every side as expected.
StepSides sidesOf(std::vector<double> stepsNs);

/// Those that addOutlooks() plays, the one that is most likely to lose first.
inline constexpr Outlook kOutlooks[] = {Outlook::dear, Outlook::cheap, Outlook::coarse, Outlook::fine};

/// Plays the job with each outlook: `stepsWith` makes its steps, or throws EditError where it cannot. `unchanged`:
/// steps as recorded; `effect`: of all changes, as expected. Those behind one after which they are `enough` are left
/// out.
void addOutlooks(const std::vector<double>& unchanged, const EditEffect& effect,
                 const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides,
                 const std::function<bool(const StepSides&)>& enough = {});

/// The same of the host's part of it: the dear outlook is the pessimistic end.
void addSlowHost(const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides);

/// Steps (ns, in order) without the first and the last one, which have no neighbour to overlap with: in a pipeline they
/// are far from the others. Of fewer than four, all.
std::vector<double> stepsBetweenEnds(std::vector<double> stepsNs);

/// By which the mean step of a run may miss: the chances of the recorded run, and those of what is new. addOutlooks()
/// does it, too.
void addChance(const std::vector<double>& unchanged, const EditEffect& effect, StepSides& sides);

struct SideGain {
    facts::Estimate savingNs;
    std::vector<std::string> assumed;  // by the change, where it is told
    bool mayDoNothing = false;         // for all that is known the job stays as it is

    /// Whatever is left open; or it may change nothing, but does no harm.
    bool surelyGains() const { return savingNs.low > 0 || (mayDoNothing && savingNs.low >= 0); }
};

/// What `after`, which has changes more than `before`, saves over it per step: the typical step as expected
/// (typicalSaving); the interval holds every side's and every outlook's, and its mean, which a step unlike the others
/// (the first one of a run) pulls away from the typical one.
SideGain gainOf(const StepSides& before, const StepSides& after);

/// Of the mean step's gain: where the middle one of all steps gains less, the gain is that of rare steps.
inline constexpr double kRecurringGain = 0.5;

/// Most steps gain nothing like the mean: the gain is that of rare steps.
bool gainedByRareSteps(const std::vector<double>& before, const std::vector<double>& after);

/// By how much a typical step of `after` is faster: the difference of the medians, as reports give the step by its
/// median. Where rare steps alone gain, that of the means: a typical step shows nothing of it. Step times in ns, by
/// step.
facts::Estimate typicalSaving(const std::vector<double>& before, const std::vector<double>& after);

}  // namespace rankscope::edits
