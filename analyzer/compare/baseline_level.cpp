// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/baseline_level.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/compare/comparability.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

// Of the difference of two values of one normal distribution, half of the amounts are below so many of its standard
// deviations: sqrt(2) times the normal distribution's quartile.
constexpr double kMiddleDifference = 1.4142135623730951 * 0.6744897501960817;
// The variance of a median of many normal values is pi/2 times that of their mean; of three values it is 1.35 times.
constexpr double kMedianVariance = 1.5707963267948966;
// So many pairs have a middle that one of them does not make.
constexpr size_t kFewestPairs = 3;

/// Runs that were saved together.
struct Entry {
    std::vector<double> logs;  // of their typical steps
    std::string label;
    bool isAccepted = false;
    size_t firstRun = 0;

    double value() const { return facts::median(logs); }
    /// As many runs as have a mean as sure as this median.
    double weight() const {
        const auto runs = static_cast<double>(logs.size());
        return runs < 3 ? runs : runs / kMedianVariance;
    }
};

std::vector<Entry> entriesOf(const std::vector<RunSummary>& runs) {
    std::vector<Entry> entries;
    for (size_t i = 0; i < runs.size(); ++i) {
        const RunSummary& run = runs[i];
        if (run.label.empty() || entries.empty() || entries.back().label != run.label)
            entries.push_back({{}, run.label, false, i});
        Entry& entry = entries.back();
        entry.logs.push_back(std::log(locate(run.stepsNs, StepEstimator::trimmedMean).value));
        entry.isAccepted |= run.beginsLevel;
    }
    return entries;
}

/// Standard deviation of a run. Pairs of one entry tell it; without them neighbouring entries do, which differ by the
/// noise alone but for the few between levels.
double noiseOfRuns(const std::vector<Entry>& entries) {
    std::vector<double> differences;
    for (const Entry& entry : entries)
        for (size_t a = 0; a < entry.logs.size(); ++a)
            for (size_t b = a + 1; b < entry.logs.size(); ++b)
                differences.push_back(std::abs(entry.logs[a] - entry.logs[b]));
    if (differences.size() < kFewestPairs) {
        differences.clear();
        for (size_t i = 1; i < entries.size(); ++i)
            differences.push_back(std::abs(entries[i].value() - entries[i - 1].value()));
    }
    if (differences.empty()) return kNoiseFloor;
    return std::max(kNoiseFloor, facts::median(differences) / kMiddleDifference);
}

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

BaselineLevel levelOf(const std::vector<Entry>& entries, size_t from, size_t until) {
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

struct Levels {
    std::vector<Entry> entries;
    double noise = 0;            // standard deviation of a run
    std::vector<size_t> starts;  // of each level, its first entry
    std::vector<BaselineLevel> levels;
};

Levels findLevels(const std::vector<RunSummary>& runs) {
    Levels found{entriesOf(runs), 0, {}, {}};
    std::vector<double> values, weights;
    std::vector<bool> accepted;
    for (const Entry& entry : found.entries) {
        values.push_back(entry.value());
        weights.push_back(entry.weight());
        accepted.push_back(entry.isAccepted);
    }
    found.noise = noiseOfRuns(found.entries);
    found.starts = levelStarts(values, weights, found.noise, accepted);
    for (size_t i = 0; i < found.starts.size(); ++i)
        found.levels.push_back(levelOf(found.entries, found.starts[i],
                                       i + 1 < found.starts.size() ? found.starts[i + 1] : found.entries.size()));
    return found;
}

/// Squares of runs around the middle of their level. A run far from it (a node that was slow once) tells nothing of the
/// usual noise, and is left out.
void addNoise(const std::vector<Entry>& entries, size_t from, size_t until, double noise, EarlierNoise& sum) {
    constexpr double kFar = 4;  // of normal values one in 16,000 lies so many standard deviations from the middle
    std::vector<double> logs;
    for (size_t i = from; i < until; ++i) logs.insert(logs.end(), entries[i].logs.begin(), entries[i].logs.end());
    const double middle = facts::median(logs);
    std::erase_if(logs, [&](double log) { return std::abs(log - middle) > kFar * noise; });
    if (logs.size() < 2) return;
    const Side side = sideOf(logs);
    sum.squares += side.variance * side.degrees();
    sum.degrees += side.degrees();
}

bool isOfKind(const RunSummary& run, const std::vector<RunSummary>& now, const std::set<std::string>& across) {
    return std::ranges::any_of(now,
                               [&](const RunSummary& other) { return differencesOfKind(run, other, across).empty(); });
}

/// "world size 4": what of the first run that is left out differs from the new ones.
void leaveOutOtherKinds(std::vector<RunSummary>& runs, const std::vector<RunSummary>& now,
                        const std::set<std::string>& across, BaselineHistory& history) {
    const auto isOther = [&](const RunSummary& run) { return !isOfKind(run, now, across); };
    const auto others = std::ranges::count_if(runs, isOther);
    if (others == 0) return;
    history.otherKinds = static_cast<int>(others);
    if (static_cast<size_t>(others) == runs.size()) {
        const std::vector<RunSummary> newest{runs.back()};
        std::erase_if(runs, [&](const RunSummary& run) { return !isOfKind(run, newest, across); });
        history.hasKind = false;
        return;
    }
    history.otherKindIs = differencesOfKind(*std::ranges::find_if(runs, isOther), now.front(), across).front();
    std::erase_if(runs, isOther);
}

}  // namespace

std::vector<size_t> levelStarts(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                const std::vector<bool>& forced) {
    const size_t count = values.size();
    if (count == 0) return {};
    const Costs costs(values, weights, noise);
    const double penalty = 3 * std::log(static_cast<double>(std::max<size_t>(2, count)));
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
                      const std::set<std::string>& across) {
    BaseChoice choice;
    std::erase_if(baseline, [](const RunSummary& run) { return run.stepsNs.empty(); });
    if (baseline.empty() || now.empty()) return choice;
    choice.history.runs = static_cast<int>(baseline.size());
    leaveOutOtherKinds(baseline, now, across, choice.history);

    const Levels found = findLevels(baseline);
    choice.history.levels = found.levels;
    for (size_t i = 0; i + 1 < found.levels.size(); ++i)
        addNoise(found.entries, found.starts[i], found.starts[i + 1], found.noise, choice.noise);
    const size_t first = found.entries[found.starts.back()].firstRun;
    choice.runs.assign(std::make_move_iterator(baseline.begin() + static_cast<std::ptrdiff_t>(first)),
                       std::make_move_iterator(baseline.end()));
    return choice;
}

BaselineTimeline timelineOf(const std::vector<RunSummary>& runs) {
    BaselineTimeline timeline;
    if (runs.empty()) return timeline;
    Levels found = findLevels(runs);
    timeline.noise = found.noise;
    timeline.levels = std::move(found.levels);
    for (size_t i = 0, level = 0; i < found.entries.size(); ++i) {
        const Entry& entry = found.entries[i];
        while (level + 1 < found.starts.size() && found.starts[level + 1] <= i) ++level;
        timeline.entries.push_back(
            {entry.firstRun, entry.logs.size(), std::exp(entry.value()), level, entry.isAccepted});
    }
    return timeline;
}

}  // namespace rankscope::compare
