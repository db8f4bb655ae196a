// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/step_overview_painter.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "analyzer/timeline/intervals.h"

namespace rankscope::analyzer {
namespace {

struct Extent {
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t longestNs = 0;
};

/// Of analysed steps, by number. Times of all ranks' steps of that number.
std::map<int, Extent> extents(const TraceFacts& facts) {
    std::map<int, Extent> steps;
    for (const RankFacts& rank : facts.ranks) {
        for (const StepWindow& window : rank.steps) {
            if (window.warmUp) continue;
            const int64_t endNs = window.startNs + window.durNs;
            Extent& step = steps.try_emplace(window.step, Extent{window.startNs, endNs, 0}).first->second;
            step = {std::min(step.startNs, window.startNs), std::max(step.endNs, endNs),
                    std::max(step.longestNs, window.durNs)};
        }
    }
    return steps;
}

const StepWindow* windowOf(const TraceFacts& facts, int rank, int step) {
    const RankFacts* found = facts.findRank(rank);
    if (found == nullptr) return nullptr;
    const auto window = std::ranges::find(found->steps, step, &StepWindow::step);
    return window == found->steps.end() ? nullptr : &*window;
}

/// What a lane can show, with the times it shows it at.
struct Layer {
    char letter;
    IntervalSet times;
};

/// The part of each column that a set covers, 0..1.
std::vector<float> coverage(const IntervalSet& set, int64_t startNs, double columnNs) {
    std::vector<float> share(StepOverview::kColumns, 0);
    for (const Interval& interval : set) {
        const double from = static_cast<double>(interval.startNs - startNs) / columnNs,
                     to = static_cast<double>(interval.endNs - startNs) / columnNs;
        const auto last = std::min(StepOverview::kColumns - 1, static_cast<size_t>(std::max(0.0, to)));
        for (auto column = static_cast<size_t>(std::max(0.0, from)); column <= last; ++column)
            share[column] += static_cast<float>(std::max(
                0.0, std::min(to, static_cast<double>(column + 1)) - std::max(from, static_cast<double>(column))));
    }
    return share;
}

/// Each column goes to the layer that is owed most so far: what is narrower than a column still gets its share of the
/// picture (error diffusion).
std::string paint(std::span<const Layer> layers, int64_t startNs, double columnNs) {
    std::vector<std::vector<float>> shares;
    for (const Layer& layer : layers) shares.push_back(coverage(layer.times, startNs, columnNs));
    std::vector<float> owed(layers.size(), 0);
    std::string lane(StepOverview::kColumns, overview::kOutside);
    for (size_t column = 0; column < lane.size(); ++column) {
        size_t most = layers.size();
        for (size_t i = 0; i < layers.size(); ++i) {
            owed[i] += shares[i][column];
            if (shares[i][column] > 0 && (most == layers.size() || owed[i] > owed[most])) most = i;
        }
        if (most == layers.size()) continue;
        lane[column] = layers[most].letter;
        owed[most] -= 1;
    }
    return lane;
}

template <typename Task, typename Part>
IntervalSet partsIn(const std::vector<Task>& tasks, const StepWindow& window, Part&& part) {
    const int64_t endNs = window.startNs + window.durNs;
    std::vector<Interval> inside;
    for (const Task& task : tasks) {
        const Interval interval = part(task);
        if (interval.endNs > window.startNs && interval.startNs < endNs)
            inside.push_back({std::max(interval.startNs, window.startNs), std::min(interval.endNs, endNs)});
    }
    return unite(std::move(inside));
}

IntervalSet join(const IntervalSet& a, const IntervalSet& b) {
    std::vector<Interval> all = a;
    all.insert(all.end(), b.begin(), b.end());
    return unite(std::move(all));
}

}  // namespace

StepOverviewPainter::StepOverviewPainter(const TraceFacts& facts) : m_facts(facts) {
    std::map<int, Extent> steps = extents(facts);
    if (steps.empty()) return;
    std::vector<std::pair<int64_t, int>> byLength;
    for (const auto& [step, extent] : steps) byLength.emplace_back(extent.longestNs, step);
    std::ranges::sort(byLength);
    m_overview.step = byLength[(byLength.size() - 1) / 2].second;
    m_overview.startNs = steps[m_overview.step].startNs;
    m_overview.endNs = steps[m_overview.step].endNs;
}

void StepOverviewPainter::take(const RankEvents& events) {
    const StepWindow* window =
        m_overview.endNs > m_overview.startNs ? windowOf(m_facts, events.rank, m_overview.step) : nullptr;
    if (window == nullptr) return;
    const IntervalSet compute = partsIn(events.compute, *window, [](const ComputeTask& task) {
        return Interval{task.startNs, task.endNs};
    });
    const IntervalSet transfer = partsIn(events.communication, *window, [](const CommTask& task) {
        return Interval{task.startNs + task.waitNs, task.endNs};
    });
    const IntervalSet all = partsIn(events.communication, *window, [](const CommTask& task) {
        return Interval{task.startNs, task.endNs};
    });
    const IntervalSet copies = partsIn(events.memory, *window, [](const MemoryTask& task) {
        return Interval{task.startNs, task.endNs};
    });
    const IntervalSet step{{window->startNs, window->startNs + window->durNs}};
    const IntervalSet memory = subtract(subtract(copies, compute), all);
    const IntervalSet exposed = subtract(all, compute);

    const double columnNs =
        static_cast<double>(m_overview.endNs - m_overview.startNs) / static_cast<double>(StepOverview::kColumns);
    const std::array<Layer, 3> device{{{overview::kCompute, compute},
                                       {overview::kMemory, memory},
                                       {overview::kNothing, subtract(step, join(compute, memory))}}};
    const std::array<Layer, 4> communication{{{overview::kTransfer, subtract(transfer, compute)},
                                              {overview::kWait, subtract(exposed, transfer)},
                                              {overview::kOverlapped, intersect(all, compute)},
                                              {overview::kNothing, subtract(step, all)}}};
    OverviewLane lane{events.rank, paint(device, m_overview.startNs, columnNs),
                      paint(communication, m_overview.startNs, columnNs)};
    const std::lock_guard lock(m_mutex);
    m_overview.lanes.push_back(std::move(lane));
}

StepOverview StepOverviewPainter::finish() && {
    std::ranges::sort(m_overview.lanes, {}, &OverviewLane::rank);
    return std::move(m_overview);
}

}  // namespace rankscope::analyzer
