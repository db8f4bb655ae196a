// SPDX-License-Identifier: Apache-2.0
// Stream capture: what streams are given to do becomes the nodes of a graph instead of running.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/vgpu/device/device_ops.h"

namespace rankscope::vgpu {

/// One captured operation. Nodes of a lane run in order; `waitsFor` are nodes of other lanes.
struct GraphNode {
    uint32_t lane;
    std::vector<uint32_t> waitsFor;
    DeviceWork work;
};

/// A lane is what one stream was given; lane 0 belongs to the stream whose capture was begun, and to the one the graph
/// is launched into.
struct Graph {
    uint32_t id = 0;
    std::vector<int> laneDevices;
    std::vector<GraphNode> nodes;
    std::vector<std::shared_ptr<void>> held;  ///< objects of the program that live as long
};

cudaStreamCaptureStatus captureStatusOf(const LocalStream& stream);

/// What the program knows a node by.
inline cudaGraphNode_t nodeHandle(uint32_t graphId, size_t node) {
    return reinterpret_cast<cudaGraphNode_t>(static_cast<uintptr_t>(graphId) << 32 | (node + 1));
}
/// The nodes a node comes directly behind, the one before it in its lane included.
std::vector<uint32_t> dependenciesOf(const Graph& graph, size_t node);

/// Lives while its streams capture. All of it under LocalProcess::mutex().
class Capture : public std::enable_shared_from_this<Capture> {
  public:
    explicit Capture(uint32_t id) : m_id(id), m_graph(std::make_shared<Graph>()) { m_graph->id = id; }

    void join(LocalStream& stream);
    void add(const LocalStream& stream, DeviceWork work);
    /// The nodes whatever comes next on the stream depends on: what an event recorded there stands for.
    std::vector<uint32_t> frontier(const LocalStream& stream) const;
    void wait(const LocalStream& stream, const std::vector<uint32_t>& nodes);
    bool beganOn(const LocalStream& stream) const { return m_lanes.front().stream == &stream; }
    /// True if every stream that took part leads back into the first.
    bool allJoined() const;
    /// Lets go of the streams.
    std::shared_ptr<Graph> end();
    void invalidate() { m_valid = false; }
    bool valid() const { return m_valid; }
    uint32_t id() const { return m_id; }
    const std::shared_ptr<Graph>& graph() const { return m_graph; }

    uintptr_t graphHandle = 0;  ///< what the program knows the graph by, if it has asked for it
    std::vector<cudaGraphNode_t> toldDependencies;

  private:
    struct Lane {
        LocalStream* stream;
        int64_t last = -1;               ///< its newest node, -1: none yet
        std::vector<uint32_t> waitsFor;  ///< of the node that comes next
    };

    uint32_t m_id;
    std::shared_ptr<Graph> m_graph;
    std::vector<Lane> m_lanes;
    bool m_valid = true;
};

}  // namespace rankscope::vgpu
