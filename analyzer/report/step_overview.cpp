// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/step_overview.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "analyzer/facts/intervals.h"
#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::report {
namespace {

struct Extent {
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t longestNs = 0;
};

/// Returns the times of analysed steps by number, over all ranks' steps of that number.
std::map<int, Extent> extents(const facts::TraceFacts& facts) {
    std::map<int, Extent> steps;
    for (const facts::RankFacts& rank : facts.ranks) {
        for (const facts::StepWindow& window : rank.steps) {
            if (window.warmUp) continue;
            const int64_t endNs = window.startNs + window.durNs;
            Extent& step = steps.try_emplace(window.step, Extent{window.startNs, endNs, 0}).first->second;
            step = {std::min(step.startNs, window.startNs), std::max(step.endNs, endNs),
                    std::max(step.longestNs, window.durNs)};
        }
    }
    return steps;
}

const facts::StepWindow* windowOf(const facts::TraceFacts& facts, int rank, int step) {
    const facts::RankFacts* found = facts.findRank(rank);
    if (found == nullptr) return nullptr;
    const auto window = std::ranges::find(found->steps, step, &facts::StepWindow::step);
    return window == found->steps.end() ? nullptr : &*window;
}

/// Is what a lane can show, with the times it shows it at.
struct Layer {
    char letter;
    facts::IntervalSet times;
};

/// Returns the part of each column that a set covers, 0..1.
std::vector<float> coverage(const facts::IntervalSet& set, int64_t startNs, double columnNs) {
    std::vector<float> share(StepOverview::kColumns, 0);
    for (const facts::Interval& interval : set) {
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
facts::IntervalSet partsIn(const std::vector<Task>& tasks, const facts::StepWindow& window, Part&& part) {
    const int64_t endNs = window.startNs + window.durNs;
    std::vector<facts::Interval> inside;
    for (const Task& task : tasks) {
        const facts::Interval interval = part(task);
        if (interval.endNs > window.startNs && interval.startNs < endNs)
            inside.push_back({std::max(interval.startNs, window.startNs), std::min(interval.endNs, endNs)});
    }
    return facts::unite(std::move(inside));
}

facts::IntervalSet join(const facts::IntervalSet& a, const facts::IntervalSet& b) {
    std::vector<facts::Interval> all = a;
    all.insert(all.end(), b.begin(), b.end());
    return facts::unite(std::move(all));
}

}  // namespace

StepOverviewPainter::StepOverviewPainter(const facts::TraceFacts& facts) : m_facts(facts) {
    std::map<int, Extent> steps = extents(facts);
    if (steps.empty()) return;
    std::vector<std::pair<int64_t, int>> byLength;
    for (const auto& [step, extent] : steps) byLength.emplace_back(extent.longestNs, step);
    std::ranges::sort(byLength);
    m_overview.step = byLength[(byLength.size() - 1) / 2].second;
    m_overview.startNs = steps[m_overview.step].startNs;
    m_overview.endNs = steps[m_overview.step].endNs;
}

void StepOverviewPainter::take(const facts::RankEvents& events) {
    const facts::StepWindow* window =
        m_overview.endNs > m_overview.startNs ? windowOf(m_facts, events.rank, m_overview.step) : nullptr;
    if (window == nullptr) return;
    const facts::IntervalSet compute = partsIn(events.compute, *window, [](const facts::ComputeTask& task) {
        return facts::Interval{task.startNs, task.endNs};
    });
    const facts::IntervalSet transfer = partsIn(events.communication, *window, [](const facts::CommTask& task) {
        return facts::Interval{task.startNs + task.waitNs, task.endNs};
    });
    const facts::IntervalSet all = partsIn(events.communication, *window, [](const facts::CommTask& task) {
        return facts::Interval{task.startNs, task.endNs};
    });
    const facts::IntervalSet copies = partsIn(events.memory, *window, [](const facts::MemoryTask& task) {
        return facts::Interval{task.startNs, task.endNs};
    });
    const facts::IntervalSet step{{window->startNs, window->startNs + window->durNs}};
    const facts::IntervalSet memory = facts::subtract(facts::subtract(copies, compute), all);
    const facts::IntervalSet exposed = facts::subtract(all, compute);

    const double columnNs =
        static_cast<double>(m_overview.endNs - m_overview.startNs) / static_cast<double>(StepOverview::kColumns);
    const std::array<Layer, 3> device{{{overview::kCompute, compute},
                                       {overview::kMemory, memory},
                                       {overview::kNothing, facts::subtract(step, join(compute, memory))}}};
    const std::array<Layer, 4> communication{{{overview::kTransfer, facts::subtract(transfer, compute)},
                                              {overview::kWait, facts::subtract(exposed, transfer)},
                                              {overview::kOverlapped, facts::intersect(all, compute)},
                                              {overview::kNothing, facts::subtract(step, all)}}};
    OverviewLane lane{events.rank, paint(device, m_overview.startNs, columnNs),
                      paint(communication, m_overview.startNs, columnNs)};
    const std::lock_guard lock(m_mutex);
    m_overview.lanes.push_back(std::move(lane));
}

void StepOverviewPainter::addLanes(std::vector<OverviewLane> lanes) {
    const std::lock_guard lock(m_mutex);
    m_overview.lanes.insert(m_overview.lanes.end(), std::make_move_iterator(lanes.begin()),
                            std::make_move_iterator(lanes.end()));
}

StepOverview StepOverviewPainter::finish() && {
    std::ranges::sort(m_overview.lanes, {}, &OverviewLane::rank);
    return std::move(m_overview);
}

}  // namespace rankscope::report
