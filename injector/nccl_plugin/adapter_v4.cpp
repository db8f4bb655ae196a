// SPDX-License-Identifier: Apache-2.0
// NCCL 2.27.
#include "injector/nccl_plugin/adapter.h"

namespace rankscope::injector {

namespace {

struct Version4 {
    using Descriptor = profiler_abi::DescriptorV4;
    static constexpr uint8_t kVersion = 4;
    static const profiler_abi::ProfilerV4* chained() noexcept { return chainedPlugin().v4; }
    static PluginOperation operation(const Descriptor& descriptor, const PluginContext& context) noexcept {
        return operationOf(descriptor, context);
    }
    static auto translateGroup(Descriptor&) noexcept {
        return [] {};
    }
};

using Adapter = ProfilerAdapter<Version4>;

int init(void** context, int* activationMask, const char* commName, uint64_t commHash, int nNodes, int nRanks, int rank,
         profiler_abi::Logger logger) noexcept {
    return Adapter::open(context, activationMask, commHash, rank, [&](void** theirs, int* mask) {
        return Version4::chained()->init(theirs, mask, commName, commHash, nNodes, nRanks, rank, logger);
    });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const profiler_abi::ProfilerV4 ncclProfiler_v4;
const profiler_abi::ProfilerV4 ncclProfiler_v4 = {
    "Rankscope", init, Adapter::startEvent, Adapter::stopEvent, Adapter::recordEventState, Adapter::finalize};

}  // namespace rankscope::injector
