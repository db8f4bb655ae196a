// SPDX-License-Identifier: Apache-2.0
// What a change gains, with an interval: the one answer that findings, `rankscope whatif` and `rankscope recommend`
// give.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "analyzer/edits/what_if.h"

namespace rankscope::edits {

/// Step times of the analysed steps at equal tokens, ns: with every transfer as expected, and at the ends of what is
/// known of another choice of NCCL's.
struct StepSides {
    std::vector<double> expected, pessimistic, optimistic;
    std::map<Outlook, std::vector<double>>
        outlooks;             // with all changes so far as each takes them; empty: the trace leaves nothing open
    bool unplayable = false;  // an outlook cannot be played: what it would gain is unknown
    double chanceNs = 0;      // by which a run of it may miss what is expected
};

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

struct SideGain {
    facts::Estimate savingNs;
    bool mayDoNothing = false;  // for all that is known the job stays as it is
};

/// What `after`, which has changes more than `before`, saves over it: the typical step as expected (typicalSaving); the
/// interval holds every side's and every outlook's, and its mean, which a step unlike the others (the first one of a
/// run) pulls away from the typical one.
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
