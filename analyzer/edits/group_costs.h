// SPDX-License-Identifier: Apache-2.0
// What a stage's sends and receives take: its calls, its kernels, and groups of messages that were not recorded.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "analyzer/edits/pipeline.h"
#include "analyzer/facts/intervals.h"

namespace rankscope::edits {

/// Times of a group by its messages. Links are shared: a message beside a sum of gradients takes longer than one alone,
/// so these are kept apart.
class GroupTimes {
  public:
    /// `alphaNs`: start-up of a message.
    explicit GroupTimes(double alphaNs = 0) : m_alphaNs(alphaNs) {}

    void add(const GroupMessages& messages, double ns, bool shared) {
        (shared ? m_shared : m_alone)[messages].push_back(ns);
    }
    /// Messages of one direction share the rank's link: beyond its start-up a group takes as often the time of one as
    /// it has messages that way. Of a group that was not seen alone, from the most alike one that was.
    int64_t aloneNs(const GroupMessages& messages) const;
    /// Beside a sum of gradients: longer by what such groups with one of these messages took longer.
    int64_t besideSumsNs(const GroupMessages& messages) const;

  private:
    using Times = std::map<GroupMessages, std::vector<double>>;
    double fromAlike(const Times& times, const std::pair<bool, int>& message, int depth) const;

    double m_alphaNs;
    Times m_alone, m_shared;
};

/// How a rank's sends and receives look in the present graph.
struct GroupCosts : LaunchCosts {
    TaskInfo call, arrival, transfer;
    std::set<uint32_t> awaited;  // lanes beside the compute stream that they wait for
    GroupTimes times;
};

/// When a rank's link carries collectives.
class CollectiveTimes {
  public:
    CollectiveTimes(const TaskGraph& graph, const Schedule& schedule);

    bool any(int rank, int64_t fromNs, int64_t toNs) const;

  private:
    std::map<int, facts::IntervalSet> m_times;  // by rank
};

/// Reads a rank's groups. `schedule`: of the graph; `alphaNs`: start-up of a message.
GroupCosts groupCosts(const TaskGraph& graph, const Schedule& schedule, const CollectiveTimes& collectives,
                      const PipelineParts& parts, int rank, double alphaNs);

/// A collective of either side is on the way at the same time as the group.
bool besideSums(const CollectiveTimes& collectives, const Schedule& schedule, const PipelinePlaces& places, int rank,
                TaskId transfer, const GroupMessages& messages);

}  // namespace rankscope::edits
