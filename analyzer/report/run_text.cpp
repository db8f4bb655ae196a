// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/run_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/text/units.h"

namespace rankscope::report {

std::string countedText(int64_t number, std::string_view noun) {
    return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string boundText(int64_t ns) {
    return ns < 1'000 ? "under 1 us" : text::durationText(static_cast<double>(ns));
}

std::string stepSourceText(const std::string& source) {
    constexpr std::string_view kNvtx = "nvtx:";
    if (source.starts_with(kNvtx)) return "steps are the ranges " + source.substr(kNvtx.size());
    if (source == "none") return "no steps are marked";
    return source == "period" ? "steps by the period of the collectives" : "steps by " + source;
}

std::string bestSeenText(const Report& report, const job::Finding& finding) {
    // Ranks begin a step at different times: the step that most of the window lies in.
    const StepRow* shown = nullptr;
    int64_t longest = 0;
    for (const StepRow& step : report.steps) {
        const int64_t both =
            std::min(finding.windowEndNs, step.startNs + step.durNs) - std::max(finding.windowStartNs, step.startNs);
        if (both > longest) {
            longest = both;
            shown = &step;
        }
    }
    const auto count = static_cast<int64_t>(finding.steps.size());
    return fmt::format(
        "best seen {}{} to {} into the recording{}",
        shown != nullptr ? fmt::format("in step {}, ", shown->index) : "at ",
        text::durationText(static_cast<double>(finding.windowStartNs)),
        text::durationText(static_cast<double>(finding.windowEndNs)),
        count > 0 ? fmt::format("; {} show{} it", countedText(count, "analysed step"), count == 1 ? "s" : "") : "");
}

}  // namespace rankscope::report
