// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "analyzer/compare/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

std::string labelText(const LeftOutRun& run) {
    return run.label.empty() ? "" : fmt::format(" ({})", run.label);
}

std::string since(const BaselineLevel& level) {
    return level.first.empty() ? "" : " since " + level.first;
}

/// Within the newest level. A line that rises fits one change as well, where that is too small to be seen.
std::string growthSentence(const BaselineHistory& history) {
    const SlowGrowth& growth = *history.growth;
    return fmt::format("drift: the step grows by {} over the last {} entries{} and the new runs{}",
                       text::percentText(growth.ratio - 1), growth.entries,
                       growth.since.empty() ? "" : fmt::format(" (from {} on)", growth.since),
                       history.movedBefore ? "" : "; no change among them is sure by itself");
}

/// The step now against the oldest level: what many small changes add up to, none of which was a regression.
std::string driftSentence(const BaselineHistory& history, const StepTimeChange& step) {
    if (!step.newNs || history.levels.size() < 2) return {};
    const BaselineLevel& oldest = history.levels.front();
    const double ratio = *step.newNs / oldest.stepNs;
    if (ratio < 1 + std::max(step.threshold, 2 * step.betweenRuns.value_or(0))) return {};
    int entries = 0;
    for (const BaselineLevel& level : history.levels | std::views::drop(1)) entries += level.entries;
    auto slower = std::ranges::count_if(history.levels, [&, last = oldest.stepNs](const BaselineLevel& level) mutable {
        return std::exchange(last, level.stepNs) < level.stepNs;
    });
    if (*step.newNs > history.levels.back().stepNs * (1 + step.threshold)) ++slower;
    return fmt::format(
        "drift: the new runs are {} slower than the oldest level of the baseline ({}{}), {} ago{}",
        text::percentText(ratio - 1), text::durationText(oldest.stepNs),
        oldest.last.empty() ? "" : ", up to " + oldest.last,
        entries == 1 ? "one entry" : fmt::format("{} entries", entries),
        slower > 0 ? fmt::format(", in {}", text::countedText(static_cast<size_t>(slower), "step")) : "");
}

}  // namespace

std::vector<std::string> historySentences(const BaselineHistory& history, const StepTimeChange& step) {
    std::vector<std::string> sentences;
    if (history.otherKinds > 0 && history.hasKind)
        sentences.push_back(fmt::format("{} of another kind in the baseline {} left out: {}",
                                        text::countedText(static_cast<size_t>(history.otherKinds), "run"),
                                        history.otherKinds == 1 ? "is" : "are", history.otherKindIs));
    if (history.leftOut.size() == 1)
        sentences.push_back(fmt::format("{} of the baseline{} does not count: it is {}", history.leftOut.front().name,
                                        labelText(history.leftOut.front()), history.leftOut.front().why));
    else if (!history.leftOut.empty())
        sentences.push_back(
            fmt::format("{} of the baseline do not count, as they are not like the others of their "
                        "entry; {}{}, the newest of them, is {}",
                        text::countedText(history.leftOut.size(), "run"), history.leftOut.back().name,
                        labelText(history.leftOut.back()), history.leftOut.back().why));
    if (history.movedBefore) {
        const BaselineLevel& newest = history.levels.back();
        sentences.push_back(fmt::format(
            "what came before this change, {}, differs from the rest of its level as the new runs do: they are "
            "compared with that",
            newest.entries == 1
                ? (newest.last.empty() ? "the newest entry of the baseline" : newest.last)
                : fmt::format("the last {} entries{}", newest.entries,
                              newest.first.empty() ? "" : fmt::format(" ({} to {})", newest.first, newest.last))));
    }
    if (history.levels.size() > 1) {
        const BaselineLevel& newest = history.levels.back();
        std::string before;
        for (auto level = history.levels.rbegin() + 1;
             level != history.levels.rend() && level < history.levels.rbegin() + 4; ++level)
            before += fmt::format("{}{} ({})", before.empty() ? "" : ", ", text::durationText(level->stepNs),
                                  text::countedText(static_cast<size_t>(level->runs), "run"));
        sentences.push_back(fmt::format(
            "the step of the baseline has moved: compared with its newest level, {}{}; before that it was {}",
            text::countedText(static_cast<size_t>(newest.runs), "run"), since(newest), before));
    }
    if (const std::string drift = driftSentence(history, step); !drift.empty())
        sentences.push_back(drift);
    else if (history.growth && step.verdict != StepVerdict::regression)
        sentences.push_back(growthSentence(history));
    return sentences;
}

}  // namespace rankscope::compare
