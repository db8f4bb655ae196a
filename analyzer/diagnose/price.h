// SPDX-License-Identifier: Apache-2.0
// The one judge of findings: what a cause costs, what its repair saves, and whether that makes it a finding. Nothing
// else sets Finding::verdict, severity, costNs, savingNs and changes.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/diagnose/plays.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct PriceThresholds {
    static constexpr double kFloorShare =
        0.03;  // what costs less of the step is a note: below it the run-to-run spread of real jobs hides the gain
    static constexpr double kNoteShare = 0.005;  // what costs less is not even a note: it would be on every report
    static constexpr int kFewestSteps =
        3;  // fewer analysed steps cannot tell a persistent cause from an accident: inconclusive
    /// Of the unchanged replay: where it is further off, no repair is played.
    static constexpr double kLargestError = 0.03;
    /// Repairs that are played on top of each other: nobody mends more at once, and the time that it takes to play them
    /// grows with their square. Where a fabric is slow in hundreds of places the others keep what they cost. A
    /// judgement: of copied captures of 4,096 ranks 32 took 14 s and 81 took 85 s; no recorded job has come near it.
    static constexpr size_t kMostPlayed = 32;
    static constexpr double kSameCost = 0.05;  // of a saving: two that differ by less are told as one
};

// What a detector says of the cost. It has filled whyNote and whyInconclusive by then, if it has a reason for either.

/// The cause was seen to take so much of each analysed step, ns: the typical step counts.
void setCost(const job::Analysis& analysis, const std::vector<double>& perStepNs, job::Finding& finding);

/// The same of what hits some steps only, as the mean over all. Shares are of the mean step, which it is a part of: of
/// a typical one it may be several times as much. `firstStep`: index of the analysed step with which the cause began;
/// the mean, and the mean step, are then of the steps from it on.
void setMeanCost(const job::Analysis& analysis, double nsPerStep, job::Finding& finding, size_t firstStep = 0);

/// The cause took all that would have come behind it; `share` below 1: the job goes on, with wrong results.
void setWholeJob(const job::Analysis& analysis, double share, job::Finding& finding);

/// What ended the job first, then by what it is worth.
void sortByWorth(std::vector<job::Finding>& findings);

/// Makes a certain finding inconclusive that rests on fewer than kFewestSteps steps.
void doubtFewSteps(const job::Analysis& analysis, job::Finding& finding);

/// What all certain findings together save.
struct Ceiling {
    facts::Estimate savingNs;
    double share = 0;     // of the typical replayed step; where rare steps alone gain, of the mean one
    size_t findings = 0;  // whose repair was replayed
};

/// Plays each certain finding's repair, deepest cause first and on top of those before it, so that no time is counted
/// twice. What saves less than kFloorShare of the step becomes a note, and what was a note for its cost alone a finding
/// when it saves more. Causes that hide each other are judged by what they save together. Where nothing can be played,
/// or the replay is further off than kLargestError, a finding keeps what it costs. Sorts them by what they are worth.
/// `plays`: of this analysis.
std::optional<Ceiling> priceFindings(const job::Analysis& analysis, std::vector<job::Finding>& findings, Plays& plays);
std::optional<Ceiling> priceFindings(const job::Analysis& analysis, std::vector<job::Finding>& findings);

/// By analysed step, ns: what changes save by themselves, 0 and more. Nothing where the trace cannot be replayed well
/// enough, or they cannot be made. Steps that were not replayed (replay/window.h) save what the middle one does.
std::optional<std::vector<double>> savingsAlone(const job::Analysis& analysis, const std::vector<job::Change>& changes);

/// Step time on a network on which every transfer takes no time / step time; nothing without a replay.
std::optional<double> transferEfficiency(const job::Analysis& analysis, Plays& plays);

}  // namespace rankscope::diagnose
