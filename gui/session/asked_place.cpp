// SPDX-License-Identifier: Apache-2.0
#include "gui/session/asked_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gui/session/step_walk.h"

namespace rankscope::gui {
namespace {

constexpr int64_t kLeastShare = 50;  // of the run: closer, so that one sees that one is there

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

Parsed<TimeRange> placeOfStep(std::string_view number, const RunInfo& run, int32_t rank) {
    Parsed<TimeRange> parsed;
    int64_t step = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), step);
    if (code != std::errc() || end != number.data() + number.size())
        parsed.error = "the number of a step is expected, such as step 5";
    else if (const auto place = roomOfStep(run, rank, step))
        parsed.value = *place;
    else
        parsed.error =
            run.steps.empty() ? std::string("this run has no steps") : fmt::format("there is no step {}", step);
    return parsed;
}

}  // namespace

Parsed<TimeRange> parsePlace(std::string_view text, const RunInfo& run, int32_t rank, TimeRange visible) {
    text = trimmed(text);
    if (text.starts_with("step")) return placeOfStep(trimmed(text.substr(4)), run, rank);
    std::string times(text);
    if (const size_t to = times.find(" to "); to != std::string::npos) times.replace(to, 4, " .. ");
    const auto [bounds, wrong] = parseDuration(times);
    Parsed<TimeRange> parsed;
    if (!wrong.empty() || text.empty() || std::string_view("<>").find(text.front()) != std::string_view::npos)
        parsed.error =
            "a time with its unit, two times or a step are expected, such as 2.27 s, 2.27 s to 2.72 s or step 5";
    else if (bounds.atLeastNs > run.whole.endNs)
        parsed.error = fmt::format("the run ends at {}", durationText(run.whole.endNs));
    else if (bounds.atMostNs != INT64_MAX && bounds.atMostNs <= bounds.atLeastNs)
        parsed.error = "the second time has to be after the first";
    if (!parsed.error.empty()) return parsed;
    if (bounds.atMostNs != INT64_MAX) {
        parsed.value = {bounds.atLeastNs, bounds.atMostNs};
    } else {
        const int64_t half = std::min(visible.span(), run.whole.span() / kLeastShare) / 2;
        parsed.value = {bounds.atLeastNs - half, bounds.atLeastNs + half};
    }
    return parsed;
}

}  // namespace rankscope::gui
