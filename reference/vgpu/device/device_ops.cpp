// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/device_ops.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/graph_capture.h"
#include "reference/vgpu/device/kernel_registry.h"
#include "reference/vgpu/device/operator_scope.h"
#include "reference/vgpu/engine/exchange.h"

namespace rankscope::vgpu {
namespace {

/// The streams that live, by handle. Handles are small numbers and not addresses, so that two runs of a job record the
/// same ones.
std::map<uintptr_t, LocalStream*>& knownStreams() {
    static auto* streams = new std::map<uintptr_t, LocalStream*>;  // guarded by LocalProcess::mutex()
    return *streams;
}

constexpr uintptr_t kFirstStreamHandle = 0x100000, kStreamHandleStep = 0x100;

LocalStream* perThreadStream(LocalProcess& process, int device) {
    struct Own {
        uint32_t process;
        int device;
        LocalStream* stream;
    };
    static thread_local std::vector<Own> own;
    for (const Own& entry : own)
        if (entry.device == device && entry.process == process.index()) return entry.stream;
    LocalStream* stream = process.createStream(device, 0, 0);
    stream->perThread = true;
    own.push_back({process.index(), device, stream});
    return stream;
}

std::shared_ptr<LaunchPrice> priceOf(const LocalProcess& process, const KernelLaunch& launch) {
    if (launch.kernel->declaresCost)
        operatorIsPaid();
    else if (auto price = priceByOperator(launch.blocks()))
        return price;
    auto price = std::make_shared<LaunchPrice>();
    price->settle(kernelWorkNs(process, launch));
    return price;
}

bool isNonBlocking(const LocalStream& stream) {
    return stream.flags & cudaStreamNonBlocking;
}

}  // namespace

LocalStream* resolveStream(LocalProcess& process, int device, cudaStream_t handle, bool perThreadDefault) {
    if (handle == cudaStreamPerThread || (handle == nullptr && perThreadDefault))
        return perThreadStream(process, device);
    if (handle == nullptr || handle == cudaStreamLegacy) return process.device(device).legacy;
    const auto found = knownStreams().find(reinterpret_cast<uintptr_t>(handle));
    return found == knownStreams().end() ? nullptr : found->second;
}

cudaStream_t rememberStream(LocalStream* stream) {
    const uintptr_t handle = kFirstStreamHandle + stream->ordinal * kStreamHandleStep;
    knownStreams()[handle] = stream;
    return reinterpret_cast<cudaStream_t>(handle);
}
bool forgetStream(cudaStream_t handle) {
    return knownStreams().erase(reinterpret_cast<uintptr_t>(handle)) != 0;
}

void orderBehind(LocalProcess& process, LocalStream& stream, StreamPoint point) {
    if (point.stream == kNone || point.seq == 0 || point.stream == stream.shared) return;
    uint64_t before = stream.submitted;
    process.waitEventOrder(stream, point);
    if (stream.submitted != before) DataPlane::instance().enqueueDependency({stream.shared, stream.submitted}, point);
}

void orderBehindDefaults(LocalProcess& process, LocalStream& stream) {
    LocalDevice& device = process.device(stream.device);
    if (&stream == device.legacy) {
        for (LocalStream* other : device.streams)
            if (other != &stream && !isNonBlocking(*other))
                orderBehind(process, stream, {other->shared, other->submitted});
    } else if (!isNonBlocking(stream) && device.legacy->submitted) {
        orderBehind(process, stream, {device.legacy->shared, device.legacy->submitted});
    }
}

OpReport reportOf(const DeviceWork& work, const LocalStream& stream, uint32_t correlation) {
    OpReport report = work.report;
    report.wanted = work.recordKind != CUPTI_ACTIVITY_KIND_INVALID && activityWanted(work.recordKind);
    report.correlation = correlation;
    report.streamId = stream.id;
    report.deviceId = static_cast<uint32_t>(stream.device);
    report.contextId = static_cast<uint32_t>(stream.device) + 1;
    return report;
}

StreamPoint perform(ApiCall& call, LocalStream& stream, DeviceWork work) {
    if (stream.capture) {
        stream.capture->add(stream, std::move(work));
        return {kNone, 0};
    }
    orderBehindDefaults(call.process(), stream);
    return work.issue(stream, reportOf(work, stream, call.correlation()));
}

std::vector<StreamPoint> everythingOn(LocalProcess& process, int ordinal) {
    std::vector<StreamPoint> points;
    for (const LocalStream* stream : process.device(ordinal).streams)
        if (stream->submitted) points.push_back({stream->shared, stream->submitted});
    return points;
}

void waitForCompletion(LocalProcess& process, const std::vector<StreamPoint>& points) {
    process.waitFor(points);
    DataPlane::instance().waitFor(points);
    {
        std::lock_guard guard(process.mutex());
        process.harvest();
    }
    process.sendObservations();
}

void enqueueEffect(StreamPoint at, std::function<void()> effect) {
    DataPlane::instance().enqueue(at, [effect = std::move(effect)] {
        effect();
        return true;
    });
}

void enqueueCostless(LocalStream& stream, std::function<void()> effect) {
    if (!stream.capture) return enqueueEffect({stream.shared, stream.submitted}, std::move(effect));
    DeviceWork work;
    work.issue = [effect = std::move(effect)](LocalStream& on, const OpReport&) {
        const StreamPoint point{on.shared, on.submitted};
        enqueueEffect(point, effect);
        return point;
    };
    stream.capture->add(stream, std::move(work));
}

void moveBytes(void* to, const void* from, size_t bytes) {
    for (const ByteRange& window : movedWindows(bytes))
        std::memmove(static_cast<char*>(to) + window.offset, static_cast<const char*>(from) + window.offset,
                     window.bytes);
}

void setBytes(void* to, int value, size_t bytes) {
    for (const ByteRange& window : movedWindows(bytes))
        std::memset(static_cast<char*>(to) + window.offset, value, window.bytes);
}

void submitKernel(ApiCall& call, LocalStream& stream, const KernelLaunch& launch) {
    DeviceWork work;
    work.recordKind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    OpReport& report = work.report;
    report.kind = OpReport::Kind::kernel;
    report.name = launch.name;
    report.grid[0] = static_cast<int>(launch.grid.x);
    report.grid[1] = static_cast<int>(launch.grid.y);
    report.grid[2] = static_cast<int>(launch.grid.z);
    report.block[0] = static_cast<int>(launch.block.x);
    report.block[1] = static_cast<int>(launch.block.y);
    report.block[2] = static_cast<int>(launch.block.z);
    report.dynamicShared = static_cast<uint32_t>(launch.sharedBytes);
    report.registers = 32;
    work.issue = [price = priceOf(call.process(), launch), body = kernelBody(launch), &process = call.process()](
                     LocalStream& on, const OpReport& as) {
        OpSpec spec;
        spec.kind = OpKind::kernel;
        spec.contended = true;
        const double factor = process.device(on.device).computeFactor * process.noiseFactor(on);
        spec.workNs = actualNs(price->healthyNs, factor);
        StreamPoint point = process.submit(on, std::move(spec), as);
        if (!price->isKnown) price->waiting.push_back({&process.newestOp(), factor});
        if (body) enqueueEffect(point, body);
        return point;
    };
    perform(call, stream, std::move(work));
}

}  // namespace rankscope::vgpu
