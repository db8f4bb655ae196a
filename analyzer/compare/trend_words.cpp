// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/trend_words.h"

#include <fmt/format.h>

#include <chrono>

#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {

std::string dayText(const std::optional<int64_t>& unixNs) {
    if (!unixNs) return "-";
    const auto days = std::chrono::floor<std::chrono::days>(
        std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(*unixNs)));
    const std::chrono::year_month_day day(days);
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                       static_cast<unsigned>(day.day()));
}

std::string findingText(const TrendFinding& finding) {
    return fmt::format(
        "{} {}, {}{}", finding.id, finding.title, finding.where.empty() ? "all ranks" : finding.where,
        finding.savingNs ? ", its repair saves " + text::durationText(*finding.savingNs) + " a step" : "");
}

std::string holdsText(const Trend& trend) {
    if (trend.runs == 0) return "no run yet";
    std::string words = text::countedText(static_cast<size_t>(trend.runs), "run");
    if (trend.kinds.size() > 1) words += fmt::format(" of {} kinds of job, the newest first", trend.kinds.size());
    if (trend.withoutSteps > 0)
        words += fmt::format("; {} without a step {} left out",
                             text::countedText(static_cast<size_t>(trend.withoutSteps), "run"),
                             trend.withoutSteps == 1 ? "is" : "are");
    return words;
}

}  // namespace rankscope::compare
