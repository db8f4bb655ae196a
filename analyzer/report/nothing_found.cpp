// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/nothing_found.h"

#include <algorithm>

#include "analyzer/report/job_death.h"

namespace rankscope::analyzer {
namespace {

bool recordsAreMissing(const Report& report) {
    return std::any_of(report.losses.begin(), report.losses.end(), [](const LossRow& loss) { return loss.severity != "info"; });
}

}  // namespace

bool isClean(const Report& report) { return report.run.stepNs > 0 && report.findings.empty() && !recordsAreMissing(report); }

std::string nothingFoundText(const Report& report) {
    if (const std::string death = jobDeath(report.losses); !death.empty()) return death + (report.findings.empty() ? "" : " What follows is of the steps before, and inconclusive.");
    if (report.run.stepNs <= 0) return "No finding: no device activity was recorded, there is nothing to analyse.";
    if (!report.findings.empty()) return "No certain finding: what follows is inconclusive, and says what would settle it.";
    if (recordsAreMissing(report)) return "No finding in what was recorded; records are missing, so that a cause may hide in them.";
    return "No finding: nothing that Rankscope knows costs 3 % of the step or more.";
}

}  // namespace rankscope::analyzer
