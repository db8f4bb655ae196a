// SPDX-License-Identifier: Apache-2.0
// What NCCL's proxy thread does on the network: one ProxyOp per collective or message, channel, peer and direction, and
// in it a ProxyStep per buffer. The steps are summed up in their op; nothing is written before its stop. All calls for
// one op come from one proxy thread.
//
// Source: NCCL 2.28.9, src/transport/net.cc (sendProxyProgress, recvProxyProgress) and src/plugin/profiler.cc. A send
// step goes from waiting for the GPU to waiting until the network takes the buffer (it has no credit of the receiver's)
// to waiting until it is sent; a receive step from waiting for data to flushing to waiting for the GPU. A proxy may
// work for a rank of another process (PXN): then parent and context are that process's pointers.
#pragma once

#include <atomic>
#include <cstdint>

#include "injector/capture_format/records.h"
#include "injector/nccl_plugin/plugin_events.h"

namespace rankscope::injector {

/// What a step is doing; the index of a time in ProxyOp. `none` until NCCL tells its first state.
enum class ProxyWait : uint8_t { gpu = 0, peer = 1, network = 2, none = 3 };
inline constexpr size_t kProxyWaits = 3;

struct ProxyStep {
    void* chained = nullptr;  ///< handle of the user's plugin
    ProxyWait wait = ProxyWait::none;
    bool used = false;
};

/// NCCL keeps at most 8 steps of an op in flight (NCCL_STEPS).
inline constexpr size_t kProxySteps = 8;

struct ProxyOp {
    std::atomic<bool> used{false};
    bool isRecorded = false;
    capture::PluginProxyOpRecord record{};
    PluginContext* context = nullptr;  ///< null for another process's
    void* chained = nullptr;
    uint32_t inWait[kProxyWaits] = {};  ///< steps in that state
    int64_t sinceNs[kProxyWaits] = {};  ///< since when there are any
    int64_t waitNs[kProxyWaits] = {};
    ProxyStep steps[kProxySteps];
};
/// Ops open at once: queued collectives x channels x directions. Beyond it an op is a counted loss.
inline constexpr uint32_t kProxyOps = 4096;

/// An op as NCCL describes it.
struct ProxyOperation {
    int32_t pid;
    uint8_t channel;
    int32_t peer;
    int32_t isSend;
    int32_t rank;
};

/// Null when there is no room, which is counted. `context` and `parent` are null when they are another process's.
ProxyOp* beginProxyOp(const ProxyOperation& operation, PluginContext* context, const PluginEvent* parent,
                      uint8_t version) noexcept;
/// Null when the op has no room for it.
ProxyStep* beginProxyStep(ProxyOp& op, int32_t step) noexcept;

/// The op or the step behind a handle; null when it is none, or has ended.
ProxyOp* asProxyOp(void* handle) noexcept;
ProxyStep* asProxyStep(void* handle) noexcept;
ProxyOp& opOf(ProxyStep& step) noexcept;

/// NCCL tells a state; `arguments` as the version lays them out, or null.
void changeProxyOp(ProxyOp& op, int state, const void* arguments) noexcept;
void changeProxyStep(ProxyStep& step, int state, const void* arguments) noexcept;

/// Writes what the op has gathered and gives its place back.
void endProxyOp(ProxyOp& op) noexcept;
void endProxyStep(ProxyStep& step) noexcept;

/// Ops for which there was no room become a loss of the file.
void tellLostProxyOps() noexcept;

}  // namespace rankscope::injector
