// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzer/diagnose/account.h"
#include "analyzer/diagnose/claims.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct Diagnosis;

/// What all detectors find, notes included, each with what it costs at most (price.h tells what it saves).
std::vector<job::Finding> detect(const job::Analysis& analysis);
/// Those of one table of diagnoses, as diagnoses() is one.
std::vector<job::Finding> detectThose(std::span<const Diagnosis* const> table, const job::Analysis& analysis,
                                      Claims& claims);
/// The same; `claims` tells afterwards which of them explains what time.
std::vector<job::Finding> detect(const job::Analysis& analysis, Claims& claims);

/// Why the recordings tell nothing but how they ended; empty where they tell more.
std::string whyOnlyTheEnd(const job::Analysis& analysis);

/// By id; each detector says for itself what it lacks.
std::vector<NotJudged> notJudged(const job::Analysis& analysis);

/// Sets window and steps: the step whose cost is nearest to the median one, of those from analysis.steps[firstStep] on.
void setTypicalStep(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, int rank,
                    job::Finding& finding, size_t firstStep = 0);

}  // namespace rankscope::diagnose
