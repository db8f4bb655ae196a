// SPDX-License-Identifier: Apache-2.0
// NCCL 2.26.
#include "injector/nccl_plugin/adapter.h"

namespace rankscope::injector {

namespace {

struct Version3 {
    using Descriptor = profiler_abi::DescriptorV3;
    static constexpr uint8_t kVersion = 3;
    static const profiler_abi::ProfilerV3* chained() noexcept { return chainedPlugin().v3; }
    static PluginOperation operation(const Descriptor& descriptor, const PluginContext&) noexcept {
        if (descriptor.type & profiler_abi::coll) {
            const auto& coll = descriptor.coll;
            return {coll.func,     coll.dataType, coll.algorithm,  coll.protocol,     coll.seqNumber, coll.count,
                    coll.commHash, coll.root,     descriptor.rank, coll.nMaxChannels, coll.nWarps,    false};
        }
        const auto& p2p = descriptor.p2p;
        return {p2p.func,     p2p.dataType, nullptr,         nullptr, 0, p2p.count,
                p2p.commHash, p2p.peer,     descriptor.rank, 0,       0, true};
    }
    static auto translateGroup(Descriptor&) noexcept {
        return [] {};
    }
};

using Adapter = ProfilerAdapter<Version3>;

int init(void** context, int* activationMask) noexcept {
    const int result = Adapter::open(context, activationMask, 0, -1,
                                     [](void** theirs, int* mask) { return Version3::chained()->init(theirs, mask); });
    // v3 has no GPU timer in its channel events: they would be stamped with whatever follows the channel's number.
    *activationMask &= ~static_cast<int>(profiler_abi::kernelChannel);
    return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const profiler_abi::ProfilerV3 ncclProfiler_v3;
const profiler_abi::ProfilerV3 ncclProfiler_v3 = {
    "Rankscope", init, Adapter::startEvent, Adapter::stopEvent, Adapter::recordEventState, Adapter::finalize};

}  // namespace rankscope::injector
