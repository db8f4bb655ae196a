// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/launch_index.h"

#include <algorithm>

namespace rankscope::edits {

int64_t ComputeLane::find(replay::TaskId task) const {
    const auto at = std::lower_bound(kernels.begin(), kernels.end(), task);  // lane order is the order of numbers
    return at != kernels.end() && *at == task ? at - kernels.begin() : -1;
}

LaunchIndex::LaunchIndex(const replay::TaskGraph& graph)
    : m_launchOf(graph.size(), replay::kNoTask), m_launched(graph.size(), 0) {
    std::vector<int64_t> kernelNs(graph.lanes.size(), 0);
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind == replay::TaskKind::kernel)
            kernelNs[graph.info[task].lane] += graph.durationNs[task];
        if (graph.info[task].kind == replay::TaskKind::transfer && graph.before[task] != replay::kNoTask)
            m_launchOf[task] = m_launchOf[graph.before[task]];
        for (const replay::Edge& edge : graph.edgesOf(task)) {
            if (static_cast<replay::WaitKind>(edge.kind) != replay::WaitKind::launch) continue;
            m_launchOf[task] = edge.from;
            ++m_launched[edge.from];
        }
    }
    for (uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
        if (kernelNs[lane] == 0) continue;
        ComputeLane& compute = m_compute[graph.lanes[lane].rank];
        if (compute.lane == replay::kNoLane || kernelNs[lane] > kernelNs[compute.lane]) compute.lane = lane;
    }
    std::vector<ComputeLane*> byLane(graph.lanes.size(), nullptr);
    for (auto& [rank, compute] : m_compute) byLane[compute.lane] = &compute;
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != replay::TaskKind::kernel || byLane[graph.info[task].lane] == nullptr) continue;
        ComputeLane& compute = *byLane[graph.info[task].lane];
        compute.kernels.push_back(task);
        compute.doneNs.push_back((compute.doneNs.empty() ? 0 : compute.doneNs.back()) + graph.durationNs[task]);
    }
}

const ComputeLane& LaunchIndex::compute(int rank) const {
    static const ComputeLane nothing;
    const auto at = m_compute.find(rank);
    return at == m_compute.end() ? nothing : at->second;
}

}  // namespace rankscope::edits
