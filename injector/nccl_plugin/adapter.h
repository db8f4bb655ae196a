// SPDX-License-Identifier: Apache-2.0
// What the adapters of all plugin versions share: the calls of NCCL's table, in terms of one version's own types.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "injector/nccl_plugin/chained_plugin.h"
#include "injector/nccl_plugin/plugin_events.h"
#include "injector/nccl_plugin/profiler_abi.h"
#include "injector/nccl_plugin/proxy_events.h"
#include "injector/session/session.h"

namespace rankscope::injector {

/// `Version` gives: Table, Descriptor, kVersion, chained(), operation(descriptor, context).
template <typename Version>
struct ProfilerAdapter {
    using Descriptor = typename Version::Descriptor;
    static constexpr int kSuccess = 0;

    /// Opens our context and folds the wishes of the user's plugin, which `initChained(void** context, int* mask)`
    /// asks, into the mask.
    template <typename InitChained>
    static int open(void** context, int* activationMask, uint64_t commHash, int rank,
                    InitChained initChained) noexcept {
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
        const uint64_t type = descriptor->type;
        if (type & profiler_abi::proxyOp) return startProxyOp(context, handle, descriptor);
        if (type & profiler_abi::proxyStep) return startProxyStep(handle, descriptor);
        PluginContext* ours = asContext(context);
        if (ours == nullptr) return kSuccess;
        const bool forUs = (type & (profiler_abi::coll | profiler_abi::p2p | profiler_abi::kernelChannel)) != 0;
        const bool forChain = isForChain(type);
        if (!forChain && !forUs) return kSuccess;
        PluginEvent* event = (type & profiler_abi::kernelChannel) != 0 ? newChannel() : newEvent();
        *handle = event;
        if (type & (profiler_abi::coll | profiler_abi::p2p)) {
            beginOperation(*event, Version::operation(*descriptor, *ours), Version::kVersion);
        } else if (type & profiler_abi::kernelChannel) {
            beginChannel(*event, *ours, asEvent(descriptor->parent), descriptor->kernelChannel.channelId,
                         descriptor->kernelChannel.startTimer);
        }
        if (forChain) startChained(*ours, event->chained, descriptor);
        return kSuccess;
    }

    static int stopEvent(void* handle) noexcept {
        void* chained = nullptr;
        if (PluginEvent* event = asEvent(handle)) {
            endEvent(*event);
            chained = event->chained;
        } else if (ProxyStep* step = asProxyStep(handle)) {
            chained = step->chained;
            endProxyStep(*step);
        } else if (ProxyOp* op = asProxyOp(handle)) {
            chained = op->chained;
            endProxyOp(*op);
        }
        if (chained != nullptr) Version::chained()->stopEvent(chained);
        return kSuccess;
    }

    static int recordEventState(void* handle, int state, void* arguments) noexcept {
        void* const chained = chainedHandleOf(handle);
        if (PluginEvent* event = asEvent(handle)) {
            if (event->isChannel && state == profiler_abi::kKernelChannelStop && arguments != nullptr) {
                uint64_t timer = 0;
                std::memcpy(&timer, arguments, sizeof timer);
                endChannel(*event, timer);
            }
        } else if (ProxyStep* step = asProxyStep(handle)) {
            changeProxyStep(*step, state, arguments);
        } else if (ProxyOp* op = asProxyOp(handle)) {
            changeProxyOp(*op, state, arguments);
        }
        if (chained != nullptr) Version::chained()->recordEventState(chained, state, arguments);
        return kSuccess;
    }

    static int finalize(void* context) noexcept {
        PluginContext* ours = asContext(context);
        if (ours == nullptr) return kSuccess;
        if (ours->chained != nullptr && Version::chained() != nullptr) Version::chained()->finalize(ours->chained);
        closeContext(ours);
        return kSuccess;
    }

  private:
    static bool isForChain(uint64_t type) noexcept {
        return s_chainLive.load(std::memory_order_acquire) &&
               (type & static_cast<uint64_t>(s_chainedMask.load(std::memory_order_relaxed))) != 0;
    }

    /// With PXN the proxy works for another process: then context and parent are that process's, and a chained plugin
    /// could do nothing with them either.
    static int startProxyOp(void* context, void** handle, Descriptor* descriptor) noexcept {
        const auto& told = descriptor->proxyOp;
        const bool isForeign = told.pid != getpid();
        PluginContext* ours = isForeign ? nullptr : asContext(context);
        if (ours == nullptr && !isForeign) return kSuccess;
        const bool forChain = !isForeign && isForChain(descriptor->type);
        ProxyOp* op = nullptr;
        if (forChain || g_session.config().ncclProxy)
            op = beginProxyOp({told.pid, told.channelId, told.peer, told.isSend, descriptor->rank}, ours,
                              isForeign ? nullptr : asEvent(descriptor->parent), Version::kVersion);
        *handle = op;
        if (op != nullptr && forChain) startChained(*ours, op->chained, descriptor);
        return kSuccess;
    }

    static int startProxyStep(void** handle, Descriptor* descriptor) noexcept {
        ProxyOp* op = asProxyOp(descriptor->parent);
        ProxyStep* step = op == nullptr ? nullptr : beginProxyStep(*op, descriptor->proxyStep.step);
        *handle = step;
        if (step != nullptr && op->chained != nullptr && isForChain(descriptor->type))
            startChained(*op->context, step->chained, descriptor);
        return kSuccess;
    }

    /// What the user's plugin calls the same event; null when it knows nothing of it.
    static void* chainedHandleOf(void* handle) noexcept {
        if (const PluginEvent* event = asEvent(handle)) return event->chained;
        if (const ProxyStep* step = asProxyStep(handle)) return step->chained;
        const ProxyOp* op = asProxyOp(handle);
        return op == nullptr ? nullptr : op->chained;
    }

    /// The user's plugin knows its own handles, not ours: parents are translated for the call and put back.
    static void startChained(PluginContext& context, void*& chained, Descriptor* descriptor) noexcept {
        void* const parent = descriptor->parent;
        if (asEvent(parent) != nullptr || asProxyStep(parent) != nullptr || asProxyOp(parent) != nullptr)
            descriptor->parent = chainedHandleOf(parent);
        const auto restoreGroup = Version::translateGroup(*descriptor);
        Version::chained()->startEvent(context.chained, &chained, descriptor);
        restoreGroup();
        descriptor->parent = parent;
    }

    static inline std::atomic<int> s_chainedMask{0};
    static inline std::atomic<bool> s_chainLive{false};
};

/// v4 to v7 describe operations alike.
template <typename Descriptor>
PluginOperation operationOf(const Descriptor& descriptor, const PluginContext& context) noexcept {
    if (descriptor.type & profiler_abi::coll) {
        const auto& coll = descriptor.coll;
        return {coll.func,        coll.dataType, coll.algorithm,  coll.protocol,  coll.seqNumber, coll.count,
                context.commHash, coll.root,     descriptor.rank, coll.nChannels, coll.nWarps,    false};
    }
    const auto& p2p = descriptor.p2p;
    return {p2p.func,         p2p.dataType, nullptr,         nullptr,       0, p2p.count,
            context.commHash, p2p.peer,     descriptor.rank, p2p.nChannels, 0, true};
}

/// v5 to v7 name the group of an operation beside its parent.
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
