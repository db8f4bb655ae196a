// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/graph_capture.h"

#include <utility>

namespace rankscope::vgpu {

cudaStreamCaptureStatus captureStatusOf(const LocalStream& stream) {
    if (!stream.capture) return cudaStreamCaptureStatusNone;
    return stream.capture->valid() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

std::vector<uint32_t> dependenciesOf(const Graph& graph, size_t node) {
    std::vector<uint32_t> before = graph.nodes[node].waitsFor;
    for (size_t i = node; i-- > 0;) {
        if (graph.nodes[i].lane != graph.nodes[node].lane) continue;
        before.push_back(static_cast<uint32_t>(i));
        break;
    }
    return before;
}

void Capture::join(LocalStream& stream) {
    stream.capture = shared_from_this();
    stream.captureLane = static_cast<uint32_t>(m_lanes.size());
    m_lanes.push_back({&stream, -1, {}});
    m_graph->laneDevices.push_back(stream.device);
}

void Capture::add(const LocalStream& stream, DeviceWork work) {
    Lane& lane = m_lanes[stream.captureLane];
    lane.last = static_cast<int64_t>(m_graph->nodes.size());
    m_graph->nodes.push_back({stream.captureLane, std::exchange(lane.waitsFor, {}), std::move(work)});
}

std::vector<uint32_t> Capture::frontier(const LocalStream& stream) const {
    const Lane& lane = m_lanes[stream.captureLane];
    std::vector<uint32_t> nodes = lane.waitsFor;
    if (lane.last >= 0) nodes.push_back(static_cast<uint32_t>(lane.last));
    return nodes;
}

void Capture::wait(const LocalStream& stream, const std::vector<uint32_t>& nodes) {
    Lane& lane = m_lanes[stream.captureLane];
    for (uint32_t node : nodes)
        if (m_graph->nodes[node].lane != stream.captureLane) lane.waitsFor.push_back(node);
}

bool Capture::allJoined() const {
    std::vector<bool> reached(m_graph->nodes.size());
    std::vector<uint32_t> open = frontier(*m_lanes.front().stream);
    std::vector<int64_t> previous(m_graph->nodes.size(), -1), newest(m_lanes.size(), -1);
    for (size_t i = 0; i < m_graph->nodes.size(); i++)
        previous[i] = std::exchange(newest[m_graph->nodes[i].lane], static_cast<int64_t>(i));
    while (!open.empty()) {
        uint32_t node = open.back();
        open.pop_back();
        if (reached[node]) continue;
        reached[node] = true;
        if (previous[node] >= 0) open.push_back(static_cast<uint32_t>(previous[node]));
        open.insert(open.end(), m_graph->nodes[node].waitsFor.begin(), m_graph->nodes[node].waitsFor.end());
    }
    for (const Lane& lane : m_lanes)
        if (lane.last >= 0 && !reached[static_cast<size_t>(lane.last)]) return false;
    return true;
}

std::shared_ptr<Graph> Capture::end() {
    auto graph = std::move(m_graph);
    for (const Lane& lane : std::exchange(m_lanes, {})) lane.stream->capture.reset();
    return graph;
}

}  // namespace rankscope::vgpu
