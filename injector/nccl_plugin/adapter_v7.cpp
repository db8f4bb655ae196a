// SPDX-License-Identifier: Apache-2.0
// NCCL 2.31 and newer: v6 plus phases of kernels and a tag that the caller gave its call. We ask for neither.
#include "injector/nccl_plugin/adapter.h"

namespace rankscope::injector {

namespace {

struct Version7 {
    using Descriptor = profiler_abi::DescriptorV5;
    static constexpr uint8_t kVersion = 7;
    static const profiler_abi::ProfilerV5* chained() noexcept { return chainedPlugin().v7; }
    static PluginOperation operation(const Descriptor& descriptor, const PluginContext& context) noexcept {
        return operationOf(descriptor, context);
    }
    static auto translateGroup(Descriptor& descriptor) noexcept { return translateParentGroup(descriptor); }
};

using Adapter = ProfilerAdapter<Version7>;

int init(void** context, uint64_t commId, int* activationMask, const char* commName, int nNodes, int nRanks, int rank,
         profiler_abi::Logger logger) noexcept {
    return Adapter::open(context, activationMask, commId, rank, [&](void** theirs, int* mask) {
        return Version7::chained()->init(theirs, commId, mask, commName, nNodes, nRanks, rank, logger);
    });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const profiler_abi::ProfilerV5 ncclProfiler_v7;
const profiler_abi::ProfilerV5 ncclProfiler_v7 = {
    "Rankscope", init, Adapter::startEvent, Adapter::stopEvent, Adapter::recordEventState, Adapter::finalize};

}  // namespace rankscope::injector
