// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs that were captured. Graphs built node by node are not modelled, and refused.
#include <algorithm>
#include <map>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/graph_capture.h"
#include "reference/vgpu/device/user_object.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 400, kCaptureNs = 4000, kLaunchCostNs = 5000, kLaunchPerNodeNs = 10,
                  kInstantiatePerNodeNs = 2000;

/// A graph ready to run: a hidden stream for each lane but the first.
struct GraphExec {
    std::shared_ptr<const Graph> graph;
    uint32_t id;
    std::vector<LocalStream*> lanes;
};

// Both guarded by LocalProcess::mutex(). Handles are small numbers, as those of streams are.
struct Graphs {
    std::map<uintptr_t, std::shared_ptr<Graph>> graphs;
    std::map<uintptr_t, GraphExec> execs;
    std::multimap<int, LocalStream*> idleLanes;
    uintptr_t nextHandle = 0x500000;
    uint32_t nextId = 1;
};

Graphs& known() {
    static auto* only = new Graphs;
    return *only;
}

template <typename Handle>
Handle newHandle() {
    return reinterpret_cast<Handle>(known().nextHandle += 0x100);
}

LocalStream* resolve(ApiCall& call, cudaStream_t handle, bool perThread) {
    return resolveStream(call.process(), call.clock().device, handle, perThread);
}

cudaError_t beginCapture(ApiCall& call, cudaStream_t handle, bool perThread) {
    std::lock_guard guard(call.process().mutex());
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    if (stream == call.process().device(stream->device).legacy) return call.end(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return call.end(cudaErrorIllegalState);
    std::make_shared<Capture>(known().nextId++)->join(*stream);
    return call.end(cudaSuccess);
}

/// What a program may ask of a stream that captures; each but the status may be null.
struct CaptureQuestion {
    cudaStreamCaptureStatus* status;
    unsigned long long* id = nullptr;
    cudaGraph_t* graph = nullptr;
    const cudaGraphNode_t** dependencies = nullptr;
    const cudaGraphEdgeData** edges = nullptr;
    size_t* count = nullptr;
};

/// The handle that the graph will keep when the capture ends. Mutex held.
cudaGraph_t handleOf(Capture& capture) {
    if (!capture.graphHandle) {
        capture.graphHandle = reinterpret_cast<uintptr_t>(newHandle<cudaGraph_t>());
        known().graphs[capture.graphHandle] = capture.graph();
    }
    return reinterpret_cast<cudaGraph_t>(capture.graphHandle);
}

void answer(const CaptureQuestion& asked, LocalStream& stream) {
    Capture* capture = captureStatusOf(stream) == cudaStreamCaptureStatusActive ? stream.capture.get() : nullptr;
    if (asked.id && stream.capture) *asked.id = stream.capture->id();
    if (asked.graph) *asked.graph = capture ? handleOf(*capture) : nullptr;
    if (asked.edges) *asked.edges = nullptr;  // no edge carries more than order
    if (!asked.dependencies && !asked.count) return;
    std::vector<cudaGraphNode_t> nodes;
    if (capture)
        for (const uint32_t node : capture->frontier(stream)) nodes.push_back(nodeHandle(capture->graph()->id, node));
    if (asked.count) *asked.count = nodes.size();
    if (asked.dependencies) *asked.dependencies = nullptr;
    if (!capture || !asked.dependencies) return;
    capture->toldDependencies = std::move(nodes);
    *asked.dependencies = capture->toldDependencies.data();
}

cudaError_t captureInfo(ApiCall& call, cudaStream_t handle, bool perThread, const CaptureQuestion& asked) {
    std::lock_guard guard(call.process().mutex());
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    if (!asked.status) return call.end(cudaErrorInvalidValue);
    *asked.status = captureStatusOf(*stream);
    answer(asked, *stream);
    return call.end(cudaSuccess);
}

cudaError_t endCapture(ApiCall& call, cudaStream_t handle, cudaGraph_t* graph, bool perThread) {
    std::lock_guard guard(call.process().mutex());
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream || !graph) return call.end(cudaErrorInvalidValue);
    *graph = nullptr;
    std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return call.end(cudaErrorIllegalState);
    if (!capture->beganOn(*stream)) return call.end(cudaErrorStreamCaptureUnmatched);
    const bool valid = capture->valid(), joined = valid && capture->allJoined();
    const cudaGraph_t handleGiven = valid && joined ? handleOf(*capture) : nullptr;
    capture->end();
    if (!handleGiven) known().graphs.erase(capture->graphHandle);
    if (!valid) return call.end(cudaErrorStreamCaptureInvalidated);
    if (!joined) return call.end(cudaErrorStreamCaptureUnjoined);
    *graph = handleGiven;
    return call.end(cudaSuccess);
}

LocalStream* takeLane(LocalProcess& process, int device) {
    if (auto it = known().idleLanes.find(device); it != known().idleLanes.end()) {
        LocalStream* stream = it->second;
        known().idleLanes.erase(it);
        return stream;
    }
    return process.createStream(device, cudaStreamNonBlocking, 0);
}

cudaError_t instantiate(ApiCall& call, cudaGraphExec_t* exec, cudaGraph_t handle) {
    std::lock_guard guard(call.process().mutex());
    auto it = known().graphs.find(reinterpret_cast<uintptr_t>(handle));
    if (!exec || it == known().graphs.end()) return call.end(cudaErrorInvalidValue);
    GraphExec ready{it->second, known().nextId++, {nullptr}};
    for (size_t lane = 1; lane < ready.graph->laneDevices.size(); lane++)
        ready.lanes.push_back(takeLane(call.process(), ready.graph->laneDevices[lane]));
    call.clock().ns += kInstantiatePerNodeNs * static_cast<int64_t>(ready.graph->nodes.size());
    *exec = newHandle<cudaGraphExec_t>();
    known().execs[reinterpret_cast<uintptr_t>(*exec)] = std::move(ready);
    return call.end(cudaSuccess);
}

/// Where the launched nodes are: their streams and, so far, their places in them.
struct Launch {
    std::vector<LocalStream*> lanes;
    std::vector<StreamPoint> points;
};

void issueNode(ApiCall& call, const GraphExec& exec, size_t index, Launch& launch,
               const std::shared_ptr<GraphSpan>& span) {
    LocalProcess& process = call.process();
    const GraphNode& node = exec.graph->nodes[index];
    LocalStream& lane = *launch.lanes[node.lane];
    process.throttle(lane);
    if (node.work.announce) node.work.announce();
    std::lock_guard guard(process.mutex());
    for (uint32_t before : node.waitsFor) orderBehind(process, lane, launch.points[before]);
    OpReport report = reportOf(node.work, lane, call.correlation());
    report.graphId = exec.id;
    report.graphNode = static_cast<uint64_t>(exec.id) << 32 | (index + 1);
    if (span) {  // one record for the whole graph takes the place of those of its nodes
        report.wanted = false;
        report.span = span;
    }
    launch.points.push_back(node.work.issue(lane, report));
}

cudaError_t launch(ApiCall& call, cudaGraphExec_t handle, cudaStream_t streamHandle, bool perThread) {
    LocalProcess& process = call.process();
    GraphExec exec;
    Launch launch;
    {
        std::lock_guard guard(process.mutex());
        LocalStream* stream = resolve(call, streamHandle, perThread);
        auto it = known().execs.find(reinterpret_cast<uintptr_t>(handle));
        if (!stream || it == known().execs.end()) return call.end(cudaErrorInvalidResourceHandle);
        if (stream->capture) return call.end(cudaErrorStreamCaptureUnsupported);
        exec = it->second;
        launch.lanes = exec.lanes;
        launch.lanes[0] = stream;
    }
    LocalStream& origin = *launch.lanes[0];
    process.throttle(origin);
    std::shared_ptr<GraphSpan> span;
    {
        std::lock_guard guard(process.mutex());
        orderBehindDefaults(process, origin);
        for (size_t lane = 1; lane < launch.lanes.size(); lane++)
            orderBehind(process, *launch.lanes[lane], {origin.shared, origin.submitted});
        if (activityWanted(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) && !exec.graph->nodes.empty()) {
            span = std::make_shared<GraphSpan>();
            span->nodesLeft = exec.graph->nodes.size();
        }
    }
    for (size_t i = 0; i < exec.graph->nodes.size(); i++) issueNode(call, exec, i, launch, span);
    std::lock_guard guard(process.mutex());
    for (size_t lane = 1; lane < launch.lanes.size(); lane++)
        orderBehind(process, origin, {launch.lanes[lane]->shared, launch.lanes[lane]->submitted});
    call.clock().ns += kLaunchPerNodeNs * static_cast<int64_t>(exec.graph->nodes.size());
    return call.end(cudaSuccess);
}

cudaError_t refuse() {
    return lastError() = cudaErrorNotSupported;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamBeginCapture", cudaStreamBeginCapture_v10000, kCaptureNs);
    return beginCapture(call, stream, false);
}
cudaError_t CUDARTAPI cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamBeginCapture_ptsz", cudaStreamBeginCapture_ptsz_v10000, kCaptureNs);
    return beginCapture(call, stream, true);
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamEndCapture", cudaStreamEndCapture_v10000, kCaptureNs);
    return endCapture(call, stream, graph, false);
}
cudaError_t CUDARTAPI cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamEndCapture_ptsz", cudaStreamEndCapture_ptsz_v10000, kCaptureNs);
    return endCapture(call, stream, graph, true);
}
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamIsCapturing", cudaStreamIsCapturing_v10000, kQuickNs);
    return captureInfo(call, stream, false, {status});
}
cudaError_t CUDARTAPI cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamIsCapturing_ptsz", cudaStreamIsCapturing_ptsz_v10000, kQuickNs);
    return captureInfo(call, stream, true, {status});
}
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                               size_t* count) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamGetCaptureInfo", cudaStreamGetCaptureInfo_v12030, kQuickNs);
    return captureInfo(call, stream, false, {status, id, graph, dependencies, edges, count});
}
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                    unsigned long long* id, cudaGraph_t* graph,
                                                    const cudaGraphNode_t** dependencies,
                                                    const cudaGraphEdgeData** edges, size_t* count) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamGetCaptureInfo_ptsz", cudaStreamGetCaptureInfo_ptsz_v12030, kQuickNs);
    return captureInfo(call, stream, true, {status, id, graph, dependencies, edges, count});
}
cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    RANKSCOPE_RUNTIME_QUESTION("cudaThreadExchangeStreamCaptureMode", cudaThreadExchangeStreamCaptureMode_v10010,
                               kQuickNs);
    static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    if (!mode) return call.end(cudaErrorInvalidValue);
    std::swap(current, *mode);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t*, unsigned) {
    return refuse();
}
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphInstantiate", cudaGraphInstantiate_v12000, kCaptureNs);
    return instantiate(call, exec, graph);
}
cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphInstantiateWithFlags", cudaGraphInstantiateWithFlags_v11040, kCaptureNs);
    return instantiate(call, exec, graph);
}
cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphUpload", cudaGraphUpload_v10000, kCaptureNs);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphLaunch", cudaGraphLaunch_v10000, kLaunchCostNs);
    return launch(call, exec, stream, false);
}
cudaError_t CUDARTAPI cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphLaunch_ptsz", cudaGraphLaunch_ptsz_v10000, kLaunchCostNs);
    return launch(call, exec, stream, true);
}
// A changed graph has to be instantiated anew, as the caller must be ready to do on real devices.
cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo* result) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphExecUpdate", cudaGraphExecUpdate_v10020, kQuickNs);
    if (result) {
        *result = {};
        result->result = cudaGraphExecUpdateErrorNotSupported;
    }
    return call.end(cudaErrorGraphExecUpdateFailure);
}
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphExecDestroy", cudaGraphExecDestroy_v10000, kQuickNs);
    std::lock_guard guard(call.process().mutex());
    auto it = known().execs.find(reinterpret_cast<uintptr_t>(exec));
    if (it == known().execs.end()) return call.end(cudaErrorInvalidValue);
    for (size_t lane = 1; lane < it->second.lanes.size(); lane++)
        known().idleLanes.emplace(it->second.lanes[lane]->device, it->second.lanes[lane]);
    known().execs.erase(it);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphDestroy", cudaGraphDestroy_v10000, kQuickNs);
    std::lock_guard guard(call.process().mutex());
    return call.end(known().graphs.erase(reinterpret_cast<uintptr_t>(graph)) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned holders,
                                                unsigned flags) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphRetainUserObject", cudaGraphRetainUserObject_v11030, kQuickNs);
    std::lock_guard guard(call.process().mutex());
    auto it = known().graphs.find(reinterpret_cast<uintptr_t>(graph));
    if (it == known().graphs.end() || holders == 0) return call.end(cudaErrorInvalidValue);
    const bool moves = flags & cudaGraphUserObjectMove;  // the graph takes over what the caller holds
    if (!moves && !retainUserObject(object, holders)) return call.end(cudaErrorInvalidValue);
    it->second->held.push_back(heldByGraph(object, holders));
    return call.end(cudaSuccess);
}
// What is built or changed node by node is not modelled; callers have to be ready for older drivers.
cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                       size_t, cudaGraphNodeParams*) {
    return refuse();
}
cudaError_t CUDARTAPI cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t, unsigned, unsigned) {
    return refuse();
}
cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*,
                                                    const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
    return refuse();
}
cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*,
                                                          size_t, unsigned) {
    return refuse();
}
cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphGetNodes", cudaGraphGetNodes_v10000, kQuickNs);
    std::lock_guard guard(call.process().mutex());
    auto it = known().graphs.find(reinterpret_cast<uintptr_t>(graph));
    if (!count || it == known().graphs.end()) return call.end(cudaErrorInvalidValue);
    const Graph& asked = *it->second;
    if (nodes)
        for (size_t i = 0; i < std::min(*count, asked.nodes.size()); i++) nodes[i] = nodeHandle(asked.id, i);
    *count = asked.nodes.size();
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* nodes,
                                                   cudaGraphEdgeData* edges, size_t* count) {
    RANKSCOPE_RUNTIME_CALL("cudaGraphNodeGetDependencies", cudaGraphNodeGetDependencies_v12030, kQuickNs);
    std::lock_guard guard(call.process().mutex());
    const auto number = reinterpret_cast<uintptr_t>(handle);
    const size_t node = (number & 0xffffffff) - 1;
    for (const auto& [_, graph] : known().graphs) {
        if (graph->id != number >> 32 || node >= graph->nodes.size()) continue;
        if (!count) break;
        const std::vector<uint32_t> before = dependenciesOf(*graph, node);
        for (size_t i = 0; nodes && i < std::min(*count, before.size()); i++) {
            nodes[i] = nodeHandle(graph->id, before[i]);
            if (edges) edges[i] = {};
        }
        *count = before.size();
        return call.end(cudaSuccess);
    }
    return call.end(cudaErrorInvalidValue);
}

}  // extern "C"
