// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/nothing_found.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/unexplained_text.h"

namespace rankscope::report {
namespace {

bool recordsAreMissing(const Report& report) {
    return std::any_of(report.losses.begin(), report.losses.end(),
                       [](const LossRow& loss) { return loss.severity != "info" && loss.kind != "link_peaks"; });
}

}  // namespace

bool isClean(const Report& report) {
    return report.run.stepNs > 0 && report.findings.empty() && !recordsAreMissing(report) &&
           report.accounting.unexplained.empty();
}

std::string nothingFoundText(const Report& report) {
    if (!report.death.empty())
        return report.death +
               (report.findings.empty() ? "" : " What follows is of the steps before, and inconclusive.");
    if (report.run.stepNs <= 0) return "No finding: no device activity was recorded, there is nothing to analyse.";
    std::string text;
    for (const std::string& sentence : unexplainedSentences(report.accounting))
        text += (text.empty() ? "" : " ") + sentence;
    if (!report.findings.empty())
        return "No certain finding: what follows is inconclusive, and says what would settle it." +
               (text.empty() ? text : " " + text);
    const bool missing = recordsAreMissing(report);
    if (!text.empty()) return text + (missing ? " Records are missing, so that a cause may hide in them." : "");
    if (missing) return "No finding in what was recorded; records are missing, so that a cause may hide in them.";
    if (const std::string said = saidText(report.accounting); !said.empty())
        return "Nothing to repair: no diagnosis that Rankscope knows costs 3 % of the step or more. But " + said + ".";
    if (report.notJudged.empty()) return "No finding: nothing that Rankscope knows costs 3 % of the step or more.";
    return fmt::format(
        "No finding: nothing that could be judged costs 3 % of the step or more; {} diagnos{} could not be.",
        report.notJudged.size(), report.notJudged.size() == 1 ? "is" : "es");
}

}  // namespace rankscope::report
