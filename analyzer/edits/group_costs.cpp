// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/group_costs.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>

#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

int depthOf(const GroupMessages& messages) {
    const auto sends = std::ranges::count_if(messages, [](const auto& message) { return message.first; });
    return static_cast<int>(
        std::max<std::ptrdiff_t>(1, std::max(sends, static_cast<std::ptrdiff_t>(messages.size()) - sends)));
}

}  // namespace

int64_t GroupTimes::aloneNs(const GroupMessages& messages) const {
    if (const auto same = m_alone.find(messages); same != m_alone.end())
        return std::llround(facts::median(same->second));
    const int depth = depthOf(messages);
    double longest = 0;
    for (const auto& message : messages) {
        const double alone = fromAlike(m_alone, message, depth);
        longest = std::max(longest, alone > 0 ? alone : fromAlike(m_shared, message, depth));
    }
    if (longest > 0) return std::llround(longest);
    std::vector<double> all;
    for (const auto& [group, times] : m_alone.empty() ? m_shared : m_alone)
        all.insert(all.end(), times.begin(), times.end());
    return std::llround(facts::median(all));
}

double GroupTimes::fromAlike(const Times& times, const std::pair<bool, int>& message, int depth) const {
    double best = 0;
    int nearest = INT_MAX;
    for (const auto& [group, seen] : times) {
        const int away = std::abs(depthOf(group) - depth);
        if (group.count(message) == 0 || away >= nearest) continue;
        const double middle = facts::median(seen);
        const double startup = std::min(m_alphaNs, middle);
        best = startup + (middle - startup) * depth / depthOf(group);
        nearest = away;
    }
    return best;
}

int64_t GroupTimes::besideSumsNs(const GroupMessages& messages) const {
    double longer = 0;
    for (const auto& [group, seen] : m_shared) {
        const bool alike =
            std::ranges::any_of(messages, [&group](const auto& message) { return group.contains(message); });
        if (alike) longer = std::max(longer, facts::median(seen) - static_cast<double>(aloneNs(group)));
    }
    return aloneNs(messages) + std::llround(longer);
}

CollectiveTimes::CollectiveTimes(const TaskGraph& graph, const Schedule& schedule) {
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        for (const ExchangeMember& member : graph.membersOf(exchange))
            m_times[member.rank].push_back({schedule.startNs[member.transfer], schedule.endNs[member.transfer]});
    }
    for (auto& [rank, times] : m_times) times = facts::unite(std::move(times));
}

bool CollectiveTimes::any(int rank, int64_t fromNs, int64_t toNs) const {
    const auto times = m_times.find(rank);
    if (times == m_times.end()) return false;
    const auto behind = std::ranges::lower_bound(times->second, toNs, {}, &facts::Interval::startNs);
    return behind != times->second.begin() && (behind - 1)->endNs > fromNs;
}

bool besideSums(const CollectiveTimes& collectives, const Schedule& schedule, const PipelinePlaces& places, int rank,
                TaskId transfer, const GroupMessages& messages) {
    const int64_t fromNs = schedule.startNs[transfer], toNs = schedule.endNs[transfer];
    if (collectives.any(rank, fromNs, toNs)) return true;
    return std::ranges::any_of(messages, [&](const auto& message) {
        return collectives.any(places.neighbour(rank, message.second), fromNs, toNs);
    });
}

GroupCosts groupCosts(const TaskGraph& graph, const Schedule& schedule, const CollectiveTimes& collectives,
                      const PipelineParts& parts, int rank, double alphaNs) {
    GroupCosts costs;
    costs.times = GroupTimes(alphaNs);
    std::vector<TaskId> calls, arrivals;
    for (int step : parts.steps())
        for (const GroupCall& group : parts.step(rank, step).groups) {
            costs.call = graph.info[group.call];
            costs.arrival = graph.info[group.arrival];
            costs.transfer = graph.info[group.transfer];
            calls.push_back(group.call);
            arrivals.push_back(group.arrival);
            costs.times.add(group.messages,
                            static_cast<double>(graph.durationNs[group.transfer] + graph.leadNs[group.transfer]),
                            besideSums(collectives, schedule, parts.places(), rank, group.transfer, group.messages));
            for (const Edge& edge : graph.edgesOf(group.arrival, WaitKind::event))
                costs.awaited.insert(graph.info[edge.from].lane);
        }
    static_cast<LaunchCosts&>(costs) = launchCosts(graph, calls, arrivals);
    return costs;
}

}  // namespace rankscope::edits
