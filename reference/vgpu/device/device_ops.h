// SPDX-License-Identifier: Apache-2.0
// What streams are given to do, by the runtime API and by NCCL alike: ordering rules, costs, records, effects.
#pragma once

#include <functional>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

struct LocalEvent {
    StreamPoint point{kNone, 0};  ///< the record operation, stream kNone: never recorded
    unsigned flags = 0;
    uint32_t id = 0;
    int device = 0;
    std::shared_ptr<Capture> capture;  ///< recorded while capturing: it stands for these nodes of the graph
    std::vector<uint32_t> capturedNodes;
};

/// Something a stream is given to do: at once, or at every launch of the graph it was captured into.
struct DeviceWork {
    CUpti_ActivityKind recordKind = CUPTI_ACTIVITY_KIND_INVALID;  ///< what it is reported as, if anything
    OpReport report;                                              ///< without stream, correlation and graph
    /// Submits the operation and enqueues its effects. Mutex held.
    std::function<StreamPoint(LocalStream& stream, const OpReport& report)> issue;
    /// What happens on the host before a graph issues it. Mutex not held.
    std::function<void()> announce;
};

/// Issues the work, behind what CUDA says the stream waits for; or keeps it, if the stream captures: then stream kNone.
/// Mutex held.
StreamPoint perform(ApiCall& call, LocalStream& stream, DeviceWork work);
/// The report of work issued now on a stream.
OpReport reportOf(const DeviceWork& work, const LocalStream& stream, uint32_t correlation);

/// The stream behind a handle: null and the two special handles name the default streams. Null if the handle is
/// unknown. LocalProcess::mutex() is held.
LocalStream* resolveStream(LocalProcess& process, int device, cudaStream_t handle, bool perThreadDefault);
bool forgetStream(cudaStream_t handle);
/// Gives a new stream the handle the program sees.
cudaStream_t rememberStream(LocalStream* stream);

/// Default-stream rules: orders the next operation of `stream` behind what CUDA says it waits for. Mutex held.
void orderBehindDefaults(LocalProcess& process, LocalStream& stream);
/// `stream` waits for `point`, in time and in effect. Mutex held.
void orderBehind(LocalProcess& process, LocalStream& stream, StreamPoint point);

/// Newest operation of every stream of a device.
std::vector<StreamPoint> everythingOn(LocalProcess& process, int device);
/// Time and effects: returns when the operations have ended. Mutex not held.
void waitForCompletion(LocalProcess& process, const std::vector<StreamPoint>& points);

/// An effect on memory, in the order of the stream `at` is in. Mutex held.
void enqueueEffect(StreamPoint at, std::function<void()> effect);

/// The same behind what the stream was given so far, or whenever its graph is launched if it captures; without time or
/// record. Mutex held.
void enqueueCostless(LocalStream& stream, std::function<void()> effect);

/// Copies what moves of `bytes` (RANKSCOPE_VGPU_DATA).
void moveBytes(void* to, const void* from, size_t bytes);
void setBytes(void* to, int value, size_t bytes);

struct KernelLaunch {
    const struct Kernel* kernel = nullptr;
    const char* name = "";
    dim3 grid, block;
    size_t sharedBytes = 0;
    void** args = nullptr;
    double blocks() const { return static_cast<double>(grid.x) * grid.y * grid.z; }
};
void submitKernel(ApiCall& call, LocalStream& stream, const KernelLaunch& launch);

}  // namespace rankscope::vgpu
