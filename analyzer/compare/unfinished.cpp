// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/unfinished.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace rankscope::compare {
namespace {

/// Kinds of loss that capture_decoder.cpp and trace_builder.cpp give to a recording without its end.
constexpr std::array<std::string_view, 5> kUnfinished = {"died", "missing_rank", "running", "unknown_end",
                                                         "unreadable_file"};

bool isUnfinished(const report::LossRow& loss) {
    return std::ranges::count(kUnfinished, loss.kind) != 0;
}

bool isWhole(const RunSummary& run) {
    return std::ranges::none_of(run.losses, isUnfinished);
}

std::optional<int> fewestStepsOfWholeRuns(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now) {
    std::optional<int> fewest;
    for (const auto* side : {&base, &now})
        for (const RunSummary& run : *side)
            if (isWhole(run)) fewest = std::min(fewest.value_or(run.steps), run.steps);
    return fewest;
}

/// "B: 5 of 12 steps"
std::string shortRuns(const std::vector<RunSummary>& runs, int whole) {
    std::string text;
    for (const RunSummary& run : runs)
        if (!isWhole(run) && run.steps < whole)
            text += fmt::format("{}{}: {} of {} steps", text.empty() ? "" : ", ", run.name, run.steps, whole);
    return text;
}

}  // namespace

std::string unfinishedText(const RunSummary& run) {
    std::string text;
    size_t count = 0;
    for (const report::LossRow& loss : run.losses)
        if (isUnfinished(loss) && count++ == 0) text = loss.meaning;
    const auto first =
        std::ranges::find(run.losses, "first_death", &report::LossRow::kind);  // of several deaths the one to look at
    if (count > 1 && first != run.losses.end()) return first->meaning;
    return count > 1 ? fmt::format("{}; and {} more like it", text, count - 1) : text;
}

std::vector<std::string> unfinishedNotices(const std::vector<RunSummary>& runs, const char* side) {
    std::vector<std::string> notices;
    for (const RunSummary& run : runs)
        if (!isWhole(run))
            notices.push_back(fmt::format("{} run {} did not finish: {}", side, run.name, unfinishedText(run)));
    return notices;
}

std::vector<Incomparable> lostSteps(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                    bool across) {
    const std::optional<int> whole = fewestStepsOfWholeRuns(base, now);
    if (!whole) return {};
    const std::string a = shortRuns(base, *whole), b = shortRuns(now, *whole);
    if (a.empty() && b.empty()) return {};
    return {{"steps lost by runs that did not finish", a.empty() ? "none" : a, b.empty() ? "none" : b, !across,
             across ? "compared all the same, as asked"
                    : "the step time is not compared (--across unfinished compares it all the same)"}};
}

}  // namespace rankscope::compare
