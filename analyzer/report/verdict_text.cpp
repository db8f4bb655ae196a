// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/nothing_found.h"
#include "analyzer/report/unexplained_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {

size_t certainFindings(const Report& report) {
    return static_cast<size_t>(std::ranges::count(report.findings, job::Verdict::found, &job::Finding::verdict));
}

std::string verdictText(const Report& report) {
    const size_t found = certainFindings(report);
    if (found == 0 || report.run.stepNs <= 0) return nothingFoundText(report);
    const job::Finding& first = *std::ranges::find(report.findings, job::Verdict::found, &job::Finding::verdict);
    std::string text = fmt::format("{} finding{}. The first costs {} of every step: {}.", found, found == 1 ? "" : "s",
                                   text::percentText(first.severity), first.cause);
    for (const std::string& sentence : unexplainedSentences(report.accounting)) text += " " + sentence;
    return text;
}

}  // namespace rankscope::report
