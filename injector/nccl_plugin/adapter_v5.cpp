// SPDX-License-Identifier: Apache-2.0
// NCCL 2.28.
#include "injector/nccl_plugin/adapter.h"

namespace rankscope::injector {

namespace {

struct Version5 {
    using Descriptor = profiler_abi::DescriptorV5;
    static constexpr uint8_t kVersion = 5;
    static const profiler_abi::ProfilerV5* chained() noexcept { return chainedPlugin().v5; }
    static PluginOperation operation(const Descriptor& descriptor, const PluginContext& context) noexcept {
        return operationOf(descriptor, context);
    }
    static auto translateGroup(Descriptor& descriptor) noexcept { return translateParentGroup(descriptor); }
};

using Adapter = ProfilerAdapter<Version5>;

int init(void** context, uint64_t commId, int* activationMask, const char* commName, int nNodes, int nRanks, int rank,
         profiler_abi::Logger logger) noexcept {
    return Adapter::open(context, activationMask, commId, rank, [&](void** theirs, int* mask) {
        return Version5::chained()->init(theirs, commId, mask, commName, nNodes, nRanks, rank, logger);
    });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const profiler_abi::ProfilerV5 ncclProfiler_v5;
const profiler_abi::ProfilerV5 ncclProfiler_v5 = {
    "Rankscope", init, Adapter::startEvent, Adapter::stopEvent, Adapter::recordEventState, Adapter::finalize};

}  // namespace rankscope::injector
