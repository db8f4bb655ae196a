// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzer/compare/baseline_level.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

/// What makes one finding of several runs the same: its diagnosis and the places of its ranks.
using FindingKey = std::pair<std::string, std::vector<std::string>>;

struct SeenFinding {
    const FindingSummary* first = nullptr;
    size_t runs = 0;
    std::vector<double> savingsNs;
};

using Seen = std::map<FindingKey, SeenFinding>;

/// The findings of at least half of an entry's runs, as compareFindings() takes them.
Seen findingsOf(const std::vector<const RunSummary*>& runs) {
    Seen seen;
    for (const RunSummary* run : runs)
        for (const FindingSummary& finding : run->findings) {
            if (finding.verdict != "found") continue;
            SeenFinding& row = seen[{finding.id, finding.roles}];
            if (!row.first) row.first = &finding;
            ++row.runs;
            if (finding.savingNs) row.savingsNs.push_back(*finding.savingNs);
        }
    std::erase_if(seen, [&](const auto& entry) { return 2 * entry.second.runs < runs.size(); });
    return seen;
}

TrendFinding toFinding(const SeenFinding& seen) {
    return {seen.first->id, seen.first->title, seen.first->roles.empty() ? "" : text::ranksText(seen.first->ranks),
            seen.savingsNs.empty() ? std::nullopt : std::optional(facts::median(seen.savingsNs))};
}

std::vector<TrendFinding> notIn(const Seen& some, const Seen& others) {
    std::vector<TrendFinding> rows;
    for (const auto& [key, seen] : some)
        if (std::ranges::none_of(others, [&key = key, &seen = seen](const auto& other) {
                return other.first == key ||
                       (other.first.second == key.second && mayBeOne(*other.second.first, *seen.first));
            }))
            rows.push_back(toFinding(seen));
    return rows;
}

/// "4 ranks, dp4, virtual GPUs"
std::string nameOf(const std::map<std::string, std::string>& environment) {
    const std::string ranks = text::valueAt(environment, "world_size");
    std::vector<std::string> parts{ranks.empty() ? "" : ranks + (ranks == "1" ? " rank" : " ranks"),
                                   text::valueAt(environment, "layout"), text::valueAt(environment, "gpu"),
                                   text::valueAt(environment, "virtual") == "yes" ? "virtual GPUs" : ""};
    std::erase(parts, "");
    return parts.empty() ? "a job that tells nothing of itself" : text::joined(parts);
}

TrendOfKind trendOfKind(const std::vector<RunSummary>& runs) {
    TrendOfKind kind;
    kind.environment = runs.back().environment;
    kind.name = nameOf(kind.environment);
    BaselineTimeline timeline = timelineOf(runs);
    if (timeline.hasPairs) kind.noise = timeline.noise;
    kind.levels = std::move(timeline.levels);
    kind.leftOut = std::move(timeline.leftOut);
    Seen before;
    for (const BaselineTimeline::Entry& of : timeline.entries) {
        TrendEntry entry;
        const RunSummary& first = runs[of.firstRun];
        entry.label = first.label;
        if (first.startUnixNs > 0) entry.startUnixNs = first.startUnixNs;
        entry.stepNs = of.stepNs;
        entry.level = of.level;
        entry.beginsLevel = of.beginsLevel;
        std::vector<const RunSummary*> members;
        for (size_t i = of.firstRun; i < of.firstRun + of.runs; ++i) {
            members.push_back(&runs[i]);
            entry.runs.push_back({runs[i].name, locate(runs[i].stepsNs, StepEstimator::trimmedMean).value});
        }
        Seen now = findingsOf(members);
        for (const auto& [key, seen] : now) entry.findings.push_back(toFinding(seen));
        if (!kind.entries.empty()) {
            entry.came = notIn(now, before);
            entry.went = notIn(before, now);
        }
        before = std::move(now);
        kind.entries.push_back(std::move(entry));
    }
    return kind;
}

}  // namespace

std::optional<double> TrendOfKind::lastRatio() const {
    if (levels.size() < 2) return std::nullopt;
    return levels.back().stepNs / levels[levels.size() - 2].stepNs;
}

Trend trendOf(const std::string& baseline, const std::vector<RunSummary>& runs) {
    Trend trend;
    trend.baseline = baseline;
    trend.runs = static_cast<int>(runs.size());
    std::vector<std::vector<RunSummary>> kinds;  // that of the newest run first
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        if (run->stepsNs.empty()) {
            ++trend.withoutSteps;
            continue;
        }
        const auto kind = std::ranges::find_if(
            kinds, [&](const auto& members) { return differencesOfKind(*run, members.front(), {}).empty(); });
        if (kind != kinds.end())
            kind->push_back(*run);
        else
            kinds.push_back({*run});
    }
    for (std::vector<RunSummary>& members : kinds) {
        std::ranges::reverse(members);
        trend.kinds.push_back(trendOfKind(members));
    }
    return trend;
}

const TrendEntry& TrendOfKind::newestMove() const {
    return *std::ranges::find(entries, levels.size() - 1, &TrendEntry::level);
}

std::string trendSentence(const TrendOfKind& kind) {
    const std::string step = "the step is " + text::durationText(kind.levels.back().stepNs);
    if (kind.levels.size() == 1)
        return fmt::format("{}, one level over {}", step,
                           kind.entries.size() == 1 ? "one entry" : fmt::format("{} entries", kind.entries.size()));
    const int entries = kind.levels.back().entries;
    const std::string since = entries == 1 ? "new with the last entry" : fmt::format("for {} entries now", entries);
    const auto against = [](double ratio, const char* level) {
        const double change = ratio - 1;
        if (std::abs(change) < kLeastMove) return fmt::format("about that of the {}", level);
        return fmt::format("{} {} than the {}", text::percentText(std::abs(change)), change > 0 ? "slower" : "faster",
                           level);
    };
    std::string sentence = fmt::format("{}, {}: {}", step, since, against(*kind.lastRatio(), "level before"));
    if (kind.levels.size() > 2) sentence += ", " + against(kind.ratio(), "oldest level");
    return sentence;
}

}  // namespace rankscope::compare
