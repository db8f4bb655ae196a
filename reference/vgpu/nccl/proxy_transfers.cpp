// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/proxy_transfers.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "reference/vgpu/engine/links.h"
#include "reference/vgpu/plugins/profiler_abi.h"
#include "reference/vgpu/plugins/profiler_host.h"

namespace rankscope::vgpu {
namespace {

using namespace profiler_abi;

// A step is one network transfer of half a megabyte (NCCL's slice of a Simple chunk); long ops are told in fewer,
// larger steps, which cost the host less.
constexpr double kStepBytes = 1 << 19;
constexpr int kMostSteps = 4;

/// Guarded by LocalProcess::mutex().
std::vector<std::shared_ptr<ProxyTransfers>>& keptTransfers() {
    static auto* transfers = new std::vector<std::shared_ptr<ProxyTransfers>>;
    return *transfers;
}

bool isWanted(const ncclComm& comm) {
    return comm.profiled && comm.shape.nodes > 1 && (profilerMask() & (kProxyOp | kProxyStep)) != 0;
}

std::shared_ptr<ProxyTransfers> emptyOf(const ncclComm& comm) {
    auto transfers = std::make_shared<ProxyTransfers>();
    transfers->context = comm.profilerContext;
    transfers->rank = comm.rank;
    return transfers;
}

/// One channel's op: its steps one after the other, each waiting first and then on the network.
template <typename Interface, typename Descriptor>
void tell(const Interface& interface, const ProxyTransfers& of, const NetworkTransfer& transfer, int channel,
          BorrowedClock& clock) {
    const double bytes = transfer.bytes / transfer.channels;
    const int steps = std::clamp(static_cast<int>(bytes / kStepBytes), 1, kMostSteps);
    clock.set(of.startNs);
    auto descriptor = describe<Descriptor>(kProxyOp, transfer.parent, of.rank);
    descriptor.proxyOp = {getpid(), static_cast<uint8_t>(channel),   static_cast<int>(transfer.peer),
                          steps,    static_cast<int>(bytes / steps), transfer.isSend};
    void* op = start(interface, of.context, descriptor);
    if (!op) return;
    interface.recordEventState(op, kProxyOpInProgress, nullptr);
    const double flowNs = static_cast<double>(transfer.flowEndNs - transfer.flowBeginNs);
    const auto at = [&](double share) { return transfer.flowBeginNs + static_cast<int64_t>(flowNs * share); };
    for (int s = 0; s < steps && (profilerMask() & kProxyStep); s++) {
        auto stepDescriptor = describe<Descriptor>(kProxyStep, op, of.rank);
        stepDescriptor.proxyStep = {s};
        void* step = start(interface, of.context, stepDescriptor);
        if (!step) continue;
        StateArguments arguments{};
        arguments.transferred = static_cast<size_t>(bytes * (s + 1) / steps) - static_cast<size_t>(bytes * s / steps);
        interface.recordEventState(
            step, transfer.isSend ? (transfer.isMessage ? kSendPeerWait : kSendGpuWait) : kRecvWait, nullptr);
        const double end = (s + 1.0) / steps;
        if (transfer.isSend) {
            clock.set(at(end - transfer.flowShare / steps));
            if (!transfer.isMessage) interface.recordEventState(step, kSendPeerWait, nullptr);
            interface.recordEventState(step, kSendWait, &arguments);
        }
        clock.set(at(end));
        if (!transfer.isSend) {
            interface.recordEventState(step, kRecvFlushWait, &arguments);
            interface.recordEventState(step, kRecvGpuWait, nullptr);
        }
        interface.stopEvent(step);
    }
    clock.set(of.endNs);
    interface.stopEvent(op);
}

template <typename Interface, typename Descriptor>
void tellAll(const Interface& interface, const ProxyTransfers& of) {
    BorrowedClock clock(of.startNs);
    for (const NetworkTransfer& transfer : of.transfers) {
        if (transfer.flowEndNs <= transfer.flowBeginNs) continue;
        for (int channel = 0; channel < transfer.channels; channel++)
            tell<Interface, Descriptor>(interface, of, transfer, channel, clock);
    }
}

}  // namespace

std::shared_ptr<ProxyTransfers> transfersOf(const Arena& arena, const ncclComm& comm, void* parent,
                                            const CollectiveCost& cost) {
    if (!parent || cost.busBytes <= 0 || !isWanted(comm)) return nullptr;
    const Comm& shared = arena.comms[comm.shared];
    const std::optional<NetworkEdges> edges = networkEdges(arena, shared, static_cast<uint32_t>(comm.rank));
    if (!edges) return nullptr;
    auto transfers = emptyOf(comm);
    NetworkTransfer transfer;
    transfer.parent = parent;
    // A rail's part of what goes from node to node.
    transfer.bytes = cost.busBytes * cost.networkShare / shared.smallestNode;
    transfer.channels = std::max(1, cost.channels / static_cast<int>(shared.smallestNode));
    const double alone = rateAlone(arena, shared, cost.networkShare) * cost.networkShare;
    // What others take of the links while it flows slows all its edges alike.
    const auto shareOf = [&](double rate) { return std::min(1.0, alone / (rate * shared.smallestNode)); };
    transfer.isSend = true;
    transfer.peer = edges->sendsTo;
    transfer.flowShare = shareOf(edges->sendRate);
    transfers->transfers.push_back(transfer);
    transfer.isSend = false;
    transfer.peer = edges->receivesFrom;
    transfer.flowShare = shareOf(edges->receiveRate);
    transfers->transfers.push_back(transfer);
    return transfers;
}

std::shared_ptr<ProxyTransfers> transfersOf(const Arena& arena, const ncclComm& comm, const std::vector<void*>& parents,
                                            std::span<const Part> parts) {
    if (!isWanted(comm)) return nullptr;
    const Comm& shared = arena.comms[comm.shared];
    const auto hostOf = [&](uint32_t rank) {
        return arena.devices[arena.members[shared.firstMember + rank].device].hostKey;
    };
    auto transfers = emptyOf(comm);
    for (size_t i = 0; i < std::min(parents.size(), parts.size()); i++) {
        if (!parents[i] || hostOf(parts[i].member) == hostOf(parts[i].peer)) continue;
        NetworkTransfer transfer;
        transfer.parent = parents[i];
        transfer.part = static_cast<uint32_t>(i);
        transfer.peer = parts[i].peer;
        transfer.isSend = parts[i].isSend != 0;
        transfer.isMessage = true;
        transfer.bytes = parts[i].busBytes;
        transfers->transfers.push_back(transfer);
    }
    return transfers->transfers.empty() ? nullptr : transfers;
}

void ProxyTransfers::keep(const Op& op, const Part* parts, int64_t, int64_t) {
    startNs = op.startNs;
    endNs = op.endNs;
    std::vector<const Part*> inOrder;
    for (uint32_t p = op.firstPart; p != kNone; p = parts[p].next) inOrder.push_back(&parts[p]);
    std::reverse(inOrder.begin(), inOrder.end());  // an operation's newest part is its first
    for (NetworkTransfer& transfer : transfers) {
        const Part& part = *inOrder.at(transfer.part);
        if (part.flowBeginNs == 0) continue;
        transfer.flowBeginNs = part.flowBeginNs;
        transfer.flowEndNs = part.flowEndNs;
    }
    keptTransfers().push_back(std::static_pointer_cast<ProxyTransfers>(shared_from_this()));
}

void sendTransfers(LocalProcess& process) {
    const int64_t nowNs = process.clock().ns;
    std::vector<std::shared_ptr<ProxyTransfers>> ended;
    {
        std::lock_guard guard(process.mutex());
        auto& all = keptTransfers();
        // The simulation may be ahead of this thread, by how much depends on the machine.
        const auto later = std::stable_partition(all.begin(), all.end(),
                                                 [&](const auto& transfers) { return transfers->endNs > nowNs; });
        ended.assign(std::make_move_iterator(later), std::make_move_iterator(all.end()));
        all.erase(later, all.end());
    }
    std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) {
        return std::tie(a->endNs, a->startNs) < std::tie(b->endNs, b->startNs);
    });
    for (const auto& transfers : ended) {
        if (profilerPlugin().v5)
            tellAll<PluginV5, DescriptorV5>(*profilerPlugin().v5, *transfers);
        else if (profilerPlugin().v4)
            tellAll<PluginV4, DescriptorV4>(*profilerPlugin().v4, *transfers);
    }
}

}  // namespace rankscope::vgpu
