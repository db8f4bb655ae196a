// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "analyzer/detectors/analysis.h"
#include "analyzer/detectors/finding.h"

namespace rankscope::analyzer {

/// Time that a diagnosis has taken for itself, so that a shallower one does not count it again. Detectors run in the registry's order,
/// deepest cause first.
struct Claims {
    double stragglerNs = 0;                        // per step
    std::set<int> stragglers;
    std::map<int64_t, double> stormNs;             // per step, by communicator
    std::map<int64_t, double> overlapNs;           // per step, by communicator
};

struct Detector {
    const char* id;
    void (*detect)(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
};

/// What all detectors share.
struct CommonThresholds {
    static constexpr double kFloorShare = 0.03;  // what costs less of the step is a note: below it the run-to-run spread of real jobs hides the gain
    static constexpr int kFewestSteps = 3;       // fewer analysed steps cannot tell a persistent cause from an accident: inconclusive
};

/// All detectors, in the order they run.
std::span<const Detector> detectors();

/// Findings by saving, notes included; `title` and the shared verdict rules are applied here.
std::vector<Finding> detect(const Analysis& analysis);

/// Fills severity, saving and verdict from the cost of each step: the median, with the quartiles as interval.
void setCost(const Analysis& analysis, const std::vector<double>& costPerStepNs, Finding& finding);

/// Sets window and steps: the step whose cost is nearest to the median one.
void setTypicalStep(const Analysis& analysis, const std::vector<double>& costPerStepNs, int rank, Finding& finding);

}  // namespace rankscope::analyzer
