// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/baseline_level.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/compare/baseline_entries.h"
#include "analyzer/compare/baseline_kinds.h"
#include "analyzer/compare/distributions.h"
#include "analyzer/compare/odd_runs.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/slow_growth.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

/// Sums over entries, of which the cost of any level follows.
class Costs {
  public:
    Costs(const std::vector<double>& values, const std::vector<double>& weights, double noise) : m_noise(noise) {
        const double centre = values.empty() ? 0 : values.front();  // sums of squares around it lose no digits
        m_sums.push_back({});
        for (size_t i = 0; i < values.size(); ++i) {
            const double x = values[i] - centre;
            const Sums& before = m_sums.back();
            m_sums.push_back(
                {before.weight + weights[i], before.first + weights[i] * x, before.second + weights[i] * x * x});
        }
    }
    double of(size_t from, size_t until) const {
        const double weight = m_sums[until].weight - m_sums[from].weight,
                     first = m_sums[until].first - m_sums[from].first,
                     second = m_sums[until].second - m_sums[from].second;
        return std::max(0.0, second - first * first / weight) / (m_noise * m_noise);
    }

  private:
    struct Sums {
        double weight = 0, first = 0, second = 0;
    };
    std::vector<Sums> m_sums;
    double m_noise;
};

BaselineLevel levelOf(const std::vector<BaselineEntry>& entries, size_t from, size_t until) {
    BaselineLevel level;
    double sum = 0;
    for (size_t i = from; i < until; ++i) {
        level.runs += static_cast<int>(entries[i].logs.size());
        for (const double log : entries[i].logs) sum += log;
    }
    level.entries = static_cast<int>(until - from);
    level.stepNs = std::exp(sum / level.runs);
    level.first = entries[from].label;
    level.last = entries[until - 1].label;
    return level;
}

/// Squares of runs around the middle of their level. A run far from it (a node that was slow once) tells nothing of the
/// usual noise, and is left out.
void addNoise(const std::vector<BaselineEntry>& entries, size_t from, size_t until, double noise, EarlierNoise& sum) {
    std::vector<double> logs;
    for (size_t i = from; i < until; ++i) logs.insert(logs.end(), entries[i].logs.begin(), entries[i].logs.end());
    const double middle = facts::median(logs);
    std::erase_if(logs, [&](double log) { return std::abs(log - middle) > kFarOff * noise; });
    if (logs.size() < 2) return;
    const Side side = sideOf(logs);
    sum.squares += side.variance * side.degrees();
    sum.degrees += side.degrees();
}

/// Values in time, each as sure as the mean of so many runs.
struct Series {
    std::vector<double> values, weights;
    void add(double value, double weight) {
        values.push_back(value);
        weights.push_back(weight);
    }
};

struct Levels {
    std::vector<BaselineEntry> entries;
    std::vector<LeftOutRun> leftOut;
    Series series;               // of the entries
    double noise = 0;            // standard deviation of a run, as large as it may well be
    std::vector<size_t> starts;  // of each level, its first entry
};

Levels findLevels(const std::vector<RunSummary>& runs) {
    Levels found;
    found.entries = entriesOf(runs);
    found.leftOut = leaveOutOddRuns(runs, found.entries);
    std::vector<bool> accepted;
    for (const BaselineEntry& entry : found.entries) {
        found.series.add(entry.value(), entry.weight());
        accepted.push_back(entry.isAccepted);
    }
    found.noise = noiseOfRuns(found.entries).widened();
    found.starts = levelStarts(found.series.values, found.series.weights, found.noise, accepted);
    return found;
}

/// The new runs as an entry: without those that are not like the others of them.
void addNewRuns(const std::vector<RunSummary>& now, double noise, Series& series) {
    std::vector<const RunSummary*> runs;
    std::vector<double> logs;
    for (const RunSummary& run : now) {
        if (run.stepsNs.empty()) continue;
        runs.push_back(&run);
        logs.push_back(std::log(locate(run.stepsNs, StepEstimator::trimmedMean).value));
    }
    const std::vector<size_t> odd = oddOnes(runs, logs, noise);
    for (auto at = odd.rbegin(); at != odd.rend(); ++at) logs.erase(logs.begin() + static_cast<std::ptrdiff_t>(*at));
    if (!logs.empty()) series.add(facts::mean(logs), static_cast<double>(logs.size()));
}

/// The newest level, with the new runs behind it.
Series newestWith(const std::vector<RunSummary>& now, const Levels& found) {
    Series level;
    for (size_t i = found.starts.back(); i < found.entries.size(); ++i)
        level.add(found.series.values[i], found.series.weights[i]);
    addNewRuns(now, found.noise, level);
    return level;
}

/// At which of these values, of which the last is that of the new runs, the step moved to where those are; 0: nowhere,
/// or with them.
size_t movedAt(const Series& level, double noise) {
    constexpr double kDiffers = 1.959963984540054;  // a normal value is beyond it on either side in 5 %
    const size_t entries = level.values.size() - 1;
    const Costs costs(level.values, level.weights, noise);
    double least = costs.of(0, entries);
    if (costs.of(0, entries + 1) - least < kDiffers * kDiffers) return 0;
    size_t best = 0;
    for (size_t at = 1; at < entries; ++at) {
        const double cost = costs.of(0, at) + costs.of(at, entries + 1);
        if (cost >= least) continue;
        least = cost;
        best = at;
    }
    return best;
}

/// What the newest level tells with the new runs, which are of its kind. `threshold`: as chooseBase() has it.
void readNewestLevel(const std::vector<RunSummary>& now, const Levels& found, const RunNoise& noise, double threshold,
                     BaselineHistory& history, std::vector<size_t>& starts) {
    const Series level = newestWith(now, found);
    const size_t entries = found.entries.size() - found.starts.back();
    if (level.values.size() == entries) return;  // no new run counts
    if (const auto growth =
            findGrowth(level.values, level.weights, noise.widened(), noise.degrees, std::log1p(threshold))) {
        const size_t first = found.entries.size() + 1 - growth->values;
        history.growth = {static_cast<int>(growth->values) - 1, found.entries[first].label, std::exp(growth->total)};
    }
    if (const size_t moved = movedAt(level, noise.widened()); moved > 0) {
        starts.push_back(found.starts.back() + moved);
        history.movedBefore = true;
    }
}

}  // namespace

std::vector<size_t> levelStarts(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                const std::vector<bool>& forced) {
    const size_t count = values.size();
    if (count == 0) return {};
    const Costs costs(values, weights, noise);
    const double places = static_cast<double>(std::max<size_t>(2, count)) - 1;
    const double penalty = chiSquaredQuantile(1 - kSplitByChance / places, 1);
    std::vector<double> best(count + 1, std::numeric_limits<double>::infinity());  // of the first so many entries
    std::vector<size_t> lastStart(count + 1, 0);
    best[0] = -penalty;
    std::vector<size_t> starts{0};  // where the last level may still begin
    for (size_t until = 1; until <= count; ++until) {
        for (const size_t start : starts) {
            const double cost = best[start] + costs.of(start, until) + penalty;
            if (cost >= best[until]) continue;
            best[until] = cost;
            lastStart[until] = start;
        }
        std::erase_if(starts, [&](size_t start) { return best[start] + costs.of(start, until) > best[until]; });
        if (until < count && forced[until]) starts.clear();
        starts.push_back(until);
    }
    std::vector<size_t> found;
    for (size_t until = count; until > 0; until = lastStart[until]) found.push_back(lastStart[until]);
    std::ranges::reverse(found);
    return found;
}

BaseChoice chooseBase(std::vector<RunSummary> baseline, const std::vector<RunSummary>& now,
                      const std::set<std::string>& across, double threshold) {
    BaseChoice choice;
    std::erase_if(baseline, [](const RunSummary& run) { return run.stepsNs.empty(); });
    if (baseline.empty() || now.empty()) return choice;
    choice.history.runs = static_cast<int>(baseline.size());
    const EarlierNoise others = leaveOutOtherKinds(baseline, now, across, choice.history);

    const Levels found = findLevels(baseline);
    choice.history.leftOut = found.leftOut;
    const std::vector<BaselineEntry>& entries = found.entries;
    std::vector<size_t> starts = found.starts;
    const RunNoise noise = noiseOfRuns(entries, others);
    if (choice.history.hasKind) readNewestLevel(now, found, noise, threshold, choice.history, starts);
    starts.push_back(entries.size());
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
        choice.history.levels.push_back(levelOf(entries, starts[i], starts[i + 1]));
        if (i + 2 < starts.size()) addNoise(entries, starts[i], starts[i + 1], found.noise, choice.noise);
    }
    EarlierNoise own = choice.noise;
    addNoise(entries, starts[starts.size() - 2], entries.size(), noise.widened(), own);
    const EarlierNoise added = addedByOtherKinds(own, others);
    choice.noise.squares += added.squares;
    choice.noise.degrees += added.degrees;
    std::vector<size_t> chosen;
    for (size_t i = starts[starts.size() - 2]; i < entries.size(); ++i)
        chosen.insert(chosen.end(), entries[i].counted.begin(), entries[i].counted.end());
    const size_t from = chosen.size() - std::min(chosen.size(), kMostRunsOfLevel);
    for (size_t i = from; i < chosen.size(); ++i) choice.runs.push_back(std::move(baseline[chosen[i]]));
    return choice;
}

BaselineTimeline timelineOf(const std::vector<RunSummary>& runs) {
    BaselineTimeline timeline;
    if (runs.empty()) return timeline;
    const Levels found = findLevels(runs);
    timeline.noise = found.noise;
    timeline.hasPairs =
        std::ranges::any_of(found.entries, [](const BaselineEntry& entry) { return entry.logs.size() > 1; });
    timeline.leftOut = found.leftOut;
    for (size_t i = 0; i < found.starts.size(); ++i) {
        const size_t until = i + 1 < found.starts.size() ? found.starts[i + 1] : found.entries.size();
        timeline.levels.push_back(levelOf(found.entries, found.starts[i], until));
        addNoise(found.entries, found.starts[i], until, found.noise, timeline.withinLevels);
    }
    for (size_t i = 0, level = 0; i < found.entries.size(); ++i) {
        const BaselineEntry& entry = found.entries[i];
        while (level + 1 < found.starts.size() && found.starts[level + 1] <= i) ++level;
        timeline.entries.push_back({entry.first, entry.size, std::exp(entry.value()), level, entry.isAccepted});
    }
    return timeline;
}

}  // namespace rankscope::compare
