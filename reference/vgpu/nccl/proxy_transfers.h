// SPDX-License-Identifier: Apache-2.0
// What NCCL's proxy thread does between nodes, as a profiler plugin is told: for each channel, peer and direction of a
// collective or message a ProxyOp with ProxySteps. An edge of the ring is on the network for its bytes at its own rate;
// the rest of the time its sender waits for the GPU, which the slowest edge of the ring holds up, and its receiver for
// data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/nccl/nccl_comm.h"

namespace rankscope::vgpu {

/// One direction of one call with one peer, in all channels.
struct NetworkTransfer {
    void* parent = nullptr;  ///< event of the collective or message
    uint32_t part = 0;       ///< its place among the operation's parts
    uint32_t peer = 0;
    bool isSend = false;
    bool isMessage = false;  ///< the sender has its data and waits for the receiver instead
    double bytes = 0;
    int channels = 1;
    double flowShare = 1;  ///< part of the flow's time for which the edge is busy
    int64_t flowBeginNs = 0, flowEndNs = 0;
};

/// Of one operation, as told once it has ended.
struct ProxyTransfers final : OperationObserver {
    void* context = nullptr;
    int rank = 0;
    std::vector<NetworkTransfer> transfers;
    int64_t startNs = 0, endNs = 0;

    void keep(const Op& op, const Part* parts, int64_t startedNs, int64_t endedNs) override;
};

/// The transfers of a collective; null when it stays inside a node or nobody wants to know.
std::shared_ptr<ProxyTransfers> transfersOf(const Arena& arena, const ncclComm& comm, void* parent,
                                            const CollectiveCost& cost);
/// Those of a group of messages, `parents` and `parts` in the order of the operation's parts.
std::shared_ptr<ProxyTransfers> transfersOf(const Arena& arena, const ncclComm& comm, const std::vector<void*>& parents,
                                            std::span<const Part> parts);

/// Tells those that have ended by the calling thread's time. LocalProcess::mutex() is not held.
void sendTransfers(LocalProcess& process);

}  // namespace rankscope::vgpu
