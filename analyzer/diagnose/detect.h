// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzer/diagnose/claims.h"
#include "analyzer/diagnose/not_judged.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct Diagnosis;

/// What all detectors share.
struct CommonThresholds {
    static constexpr double kFloorShare =
        0.03;  // what costs less of the step is a note: below it the run-to-run spread of real jobs hides the gain
    static constexpr double kNoteShare = 0.005;  // what costs less is not even a note: it would be on every report
    static constexpr int kFewestSteps =
        3;  // fewer analysed steps cannot tell a persistent cause from an accident: inconclusive
};

/// Findings by saving, notes included; `title` and the shared verdict rules are applied here.
std::vector<job::Finding> detect(const job::Analysis& analysis);
/// Those of one table of diagnoses, as diagnoses() is one.
std::vector<job::Finding> detectThose(std::span<const Diagnosis* const> table, const job::Analysis& analysis,
                                      Claims& claims);
/// The same; `claims` tells afterwards which of them explains what time.
std::vector<job::Finding> detect(const job::Analysis& analysis, Claims& claims);

/// By id; each detector says for itself what it lacks.
std::vector<NotJudged> notJudged(const job::Analysis& analysis);

/// Fills severity, saving and verdict from the cost of each step: the median, with the quartiles as interval.
void setCost(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, job::Finding& finding);

/// Sets window and steps: the step whose cost is nearest to the median one.
void setTypicalStep(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, int rank,
                    job::Finding& finding);

}  // namespace rankscope::diagnose
