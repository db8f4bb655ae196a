// SPDX-License-Identifier: Apache-2.0
// What the adapters of all plugin versions share: the calls of NCCL's table, in terms of one version's own types.
#pragma once

#include <atomic>
#include <cstring>
#include <unistd.h>

#include "injector/entry/session.h"
#include "injector/nccl_plugin/chained_plugin.h"
#include "injector/nccl_plugin/plugin_events.h"
#include "injector/nccl_plugin/profiler_abi.h"

namespace rankscope::injector {

/// `Version` gives: Table, Descriptor, kVersion, chained(), operation(descriptor, context).
template <typename Version>
struct ProfilerAdapter {
    using Descriptor = typename Version::Descriptor;
    static constexpr int kSuccess = 0;

    /// Opens our context and folds the wishes of the user's plugin, which `initChained(void** context, int* mask)` asks, into the mask.
    template <typename InitChained>
    static int open(void** context, int* activationMask, uint64_t commHash, int rank, InitChained initChained) noexcept {
        PluginContext* ours = openContext(commHash, rank, Version::kVersion);
        *context = ours;
        if (ours == nullptr) return kSuccess;
        int mask = wantedEvents();
        if (Version::chained() != nullptr) {
            int theirs = 0;
            if (initChained(&ours->chained, &theirs) == kSuccess) {
                mask |= theirs;
                s_chainedMask.store(theirs, std::memory_order_relaxed);
                s_chainLive.store(true, std::memory_order_release);
            }
        } else {
            tellNotChained(Version::kVersion);
        }
        *activationMask = mask;
        return kSuccess;
    }

    static int startEvent(void* context, void** handle, Descriptor* descriptor) noexcept {
        *handle = nullptr;
        auto* ours = static_cast<PluginContext*>(context);
        if (ours == nullptr) return kSuccess;
        const uint64_t type = descriptor->type;
        const bool forChain = s_chainLive.load(std::memory_order_acquire) && (type & static_cast<uint64_t>(s_chainedMask.load(std::memory_order_relaxed))) != 0;
        const bool forUs = (type & (profiler_abi::coll | profiler_abi::p2p | profiler_abi::kernelChannel)) != 0;
        if (!forChain && !forUs) return kSuccess;
        PluginEvent* event = newEvent();
        *handle = event;
        if (type & (profiler_abi::coll | profiler_abi::p2p)) {
            beginOperation(*event, Version::operation(*descriptor, *ours), Version::kVersion);
        } else if (type & profiler_abi::kernelChannel) {
            beginChannel(*event, *ours, asEvent(descriptor->parent), descriptor->kernelChannel.channelId, descriptor->kernelChannel.startTimer);
        }
        if (forChain) startChained(*ours, *event, descriptor);
        return kSuccess;
    }

    static int stopEvent(void* handle) noexcept {
        PluginEvent* event = asEvent(handle);
        if (event == nullptr) return kSuccess;
        endEvent(*event);
        if (event->chained != nullptr) Version::chained()->stopEvent(event->chained);
        return kSuccess;
    }

    static int recordEventState(void* handle, int state, void* arguments) noexcept {
        PluginEvent* event = asEvent(handle);
        if (event == nullptr) return kSuccess;
        if (event->isChannel && state == profiler_abi::kKernelChannelStop && arguments != nullptr) {
            uint64_t timer = 0;
            std::memcpy(&timer, arguments, sizeof timer);
            endChannel(*event, timer);
        }
        if (event->chained != nullptr) Version::chained()->recordEventState(event->chained, state, arguments);
        return kSuccess;
    }

    static int finalize(void* context) noexcept {
        auto* ours = static_cast<PluginContext*>(context);
        if (ours == nullptr) return kSuccess;
        if (ours->chained != nullptr && Version::chained() != nullptr) Version::chained()->finalize(ours->chained);
        closeContext(ours);
        return kSuccess;
    }

private:
    /// The user's plugin knows its own handles, not ours: parents are translated for the call and put back.
    static void startChained(PluginContext& context, PluginEvent& event, Descriptor* descriptor) noexcept {
        void* const parent = descriptor->parent;
        const PluginEvent* parentEvent = asEvent(parent);
        if (parentEvent != nullptr) descriptor->parent = parentEvent->chained;
        const auto restoreGroup = Version::translateGroup(*descriptor);
        Version::chained()->startEvent(context.chained, &event.chained, descriptor);
        restoreGroup();
        descriptor->parent = parent;
    }

    static inline std::atomic<int> s_chainedMask{0};
    static inline std::atomic<bool> s_chainLive{false};
};

/// v4, v5 and v6 describe operations alike.
template <typename Descriptor>
PluginOperation operationOf(const Descriptor& descriptor, const PluginContext& context) noexcept {
    if (descriptor.type & profiler_abi::coll) {
        const auto& coll = descriptor.coll;
        return {coll.func, coll.dataType, coll.algorithm, coll.protocol, coll.seqNumber, coll.count, context.commHash, coll.root,
                descriptor.rank, coll.nChannels, coll.nWarps, false};
    }
    const auto& p2p = descriptor.p2p;
    return {p2p.func, p2p.dataType, nullptr, nullptr, 0, p2p.count, context.commHash, p2p.peer, descriptor.rank, p2p.nChannels, 0, true};
}

/// v5 and v6 name the group of an operation beside its parent.
inline auto translateParentGroup(profiler_abi::DescriptorV5& descriptor) noexcept {
    void** group = nullptr;
    if (descriptor.type & profiler_abi::coll) group = &descriptor.coll.parentGroup;
    if (descriptor.type & profiler_abi::p2p) group = &descriptor.p2p.parentGroup;
    void* const kept = group == nullptr ? nullptr : *group;
    if (const PluginEvent* event = asEvent(kept)) *group = event->chained;
    return [group, kept] {
        if (group != nullptr) *group = kept;
    };
}

}  // namespace rankscope::injector
