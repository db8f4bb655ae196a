// SPDX-License-Identifier: Apache-2.0
// NCCL 2.29 and 2.30: v5 plus events of the copy engines, which we do not ask for.
#include "injector/nccl_plugin/adapter.h"

namespace rankscope::injector {

namespace {

struct Version6 {
    using Descriptor = profiler_abi::DescriptorV5;
    static constexpr uint8_t kVersion = 6;
    static const profiler_abi::ProfilerV5* chained() noexcept { return chainedPlugin().v6; }
    static PluginOperation operation(const Descriptor& descriptor, const PluginContext& context) noexcept {
        return operationOf(descriptor, context);
    }
    static auto translateGroup(Descriptor& descriptor) noexcept { return translateParentGroup(descriptor); }
};

using Adapter = ProfilerAdapter<Version6>;

int init(void** context, uint64_t commId, int* activationMask, const char* commName, int nNodes, int nRanks, int rank,
         profiler_abi::Logger logger) noexcept {
    return Adapter::open(context, activationMask, commId, rank, [&](void** theirs, int* mask) {
        return Version6::chained()->init(theirs, commId, mask, commName, nNodes, nRanks, rank, logger);
    });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const profiler_abi::ProfilerV5 ncclProfiler_v6;
const profiler_abi::ProfilerV5 ncclProfiler_v6 = {
    "Rankscope", init, Adapter::startEvent, Adapter::stopEvent, Adapter::recordEventState, Adapter::finalize};

}  // namespace rankscope::injector
