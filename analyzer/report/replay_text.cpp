// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/replay_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

constexpr double kWorthSaying = 0.005;  // of the path: less rounds to nothing

}  // namespace

std::string replayText(const ReplaySection& replay) {
    if (!replay.unavailable.empty()) return "no replay: " + replay.unavailable;
    return fmt::format("replay of the unchanged step: {} against {} measured (start to start), {:.2f} % off",
                       text::durationText(*replay.predictedStepNs), text::durationText(*replay.measuredStepNs),
                       100 * *replay.error);
}

std::string criticalPathText(const ReplaySection& replay) {
    if (!replay.unavailable.empty()) return {};
    double lengthNs = 0;
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [category, ns] : replay.criticalPathNs) {
        lengthNs += ns;
        parts.emplace_back(ns, category);
    }
    if (lengthNs <= 0) return {};
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text = "critical path:";
    for (const auto& [ns, category] : parts)
        if (ns >= kWorthSaying * lengthNs)
            text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", text::percentText(ns / lengthNs), category);
    std::pair<int, double> most{-1, 0};
    for (const auto& [rank, ns] : replay.criticalRanksNs)
        if (ns > most.second) most = {rank, ns};
    if (most.second >= lengthNs)
        text += fmt::format("; all of it on rank {}", most.first);
    else if (most.first >= 0)
        text += fmt::format("; {} of it on rank {}", text::percentText(most.second / lengthNs), most.first);
    return text;
}

std::string ceilingText(const CeilingSection& ceiling, size_t found) {
    const std::string which =
        ceiling.findings >= found
            ? "All of these together save"
            : fmt::format("{} of them, those that can be replayed, together save", ceiling.findings);
    return fmt::format("{} {} of each step ({}; {} to {}), replayed at once.", which,
                       text::durationText(ceiling.savingNs.expected), text::percentText(ceiling.share),
                       text::durationText(ceiling.savingNs.low), text::durationText(ceiling.savingNs.high));
}

}  // namespace rankscope::report
