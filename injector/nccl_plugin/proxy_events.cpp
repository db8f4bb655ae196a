// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_plugin/proxy_events.h"

#include <unistd.h>

#include <cstring>

#include "injector/nccl_plugin/profiler_abi.h"
#include "injector/session/session.h"

namespace rankscope::injector {

namespace {

struct Pool {
    ProxyOp ops[kProxyOps];
    std::atomic<uint32_t> next{0};
    std::atomic<uint64_t> lost{0};
};

constinit Pool g_pool;

/// How far a place is looked for: ops end about in the order of their start, so the oldest places are free first.
constexpr uint32_t kTries = 256;

ProxyOp* takeOp() noexcept {
    for (uint32_t i = 0; i < kTries; ++i) {
        ProxyOp& op = g_pool.ops[g_pool.next.fetch_add(1, std::memory_order_relaxed) % kProxyOps];
        bool isFree = false;
        if (op.used.compare_exchange_strong(isFree, true, std::memory_order_acquire, std::memory_order_relaxed))
            return &op;
    }
    g_pool.lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

void clear(ProxyOp& op) noexcept {
    op.isRecorded = false;
    op.record = {};
    op.context = nullptr;
    op.chained = nullptr;
    for (size_t w = 0; w < kProxyWaits; ++w) {
        op.inWait[w] = 0;
        op.sinceNs[w] = op.waitNs[w] = 0;
    }
    for (ProxyStep& step : op.steps) step = {};
}

ProxyWait waitOfState(int state) noexcept {
    using namespace profiler_abi;
    switch (state) {
        case kSendGpuWait:
        case kRecvGpuWait:
            return ProxyWait::gpu;
        case kSendPeerWait:
        case kRecvFlushWait:
            return ProxyWait::peer;
        case kSendWait:
        case kRecvWait:
            return ProxyWait::network;
        default:
            return ProxyWait::none;
    }
}

void enter(ProxyOp& op, ProxyStep& step, ProxyWait wait, int64_t ns) noexcept {
    if (step.wait == wait) return;
    if (step.wait != ProxyWait::none) {
        const auto left = static_cast<size_t>(step.wait);
        if (--op.inWait[left] == 0) op.waitNs[left] += ns - op.sinceNs[left];
    }
    step.wait = wait;
    if (wait == ProxyWait::none) return;
    const auto entered = static_cast<size_t>(wait);
    if (op.inWait[entered]++ == 0) op.sinceNs[entered] = ns;
}

/// Where a handle points to inside the pool: the op and the offset in it.
ProxyOp* opAround(void* handle, size_t& offset) noexcept {
    const auto at = reinterpret_cast<uintptr_t>(handle);
    const auto first = reinterpret_cast<uintptr_t>(g_pool.ops);
    if (at < first || at >= first + sizeof g_pool.ops) return nullptr;
    offset = (at - first) % sizeof(ProxyOp);
    ProxyOp& op = g_pool.ops[(at - first) / sizeof(ProxyOp)];
    return op.used.load(std::memory_order_acquire) ? &op : nullptr;
}

}  // namespace

ProxyOp* beginProxyOp(const ProxyOperation& operation, PluginContext* context, const PluginEvent* parent,
                      uint8_t version) noexcept {
    ProxyOp* op = takeOp();
    if (op == nullptr) return nullptr;
    clear(*op);
    op->context = context;
    const bool isForeign = operation.pid != getpid();
    // What belongs to a collective is recorded if the collective was, however late it happens.
    const bool isInRange = isForeign
                               ? g_session.mode() == Mode::recording
                               : parent != nullptr && parent->record.startNs != 0 && g_session.mode() != Mode::off;
    op->isRecorded = isInRange && g_session.config().ncclProxy;
    if (!op->isRecorded) return op;
    capture::PluginProxyOpRecord& record = op->record;
    record.head = {capture::RecordType::pluginProxyOp, sizeof record / capture::kCellBytes, 0};
    record.startNs = g_session.now();
    if (context != nullptr) record.commHash = context->commHash;
    if (parent != nullptr) {
        record.head.aux = parent->record.head.aux;
        record.parentSeq = parent->record.seq;
        record.parentStartNs = parent->record.startNs;
        record.seqNumber = parent->record.seqNumber;
        record.commHash = parent->record.commHash;
    }
    record.peer = operation.peer;
    record.channel = operation.channel;
    record.isSend = operation.isSend != 0;
    record.pluginVersion = version;
    record.flags = isForeign ? 1 : 0;
    record.rank = operation.rank;
    return op;
}

ProxyStep* beginProxyStep(ProxyOp& op, int32_t step) noexcept {
    ProxyStep& place = op.steps[static_cast<uint32_t>(step) % kProxySteps];
    if (place.used) return nullptr;
    place = {};
    place.used = true;
    ++op.record.steps;
    return &place;
}

ProxyOp* asProxyOp(void* handle) noexcept {
    size_t offset = 0;
    ProxyOp* op = opAround(handle, offset);
    return offset == 0 ? op : nullptr;
}

ProxyStep* asProxyStep(void* handle) noexcept {
    size_t offset = 0;
    if (opAround(handle, offset) == nullptr || offset < offsetof(ProxyOp, steps) ||
        (offset - offsetof(ProxyOp, steps)) % sizeof(ProxyStep) != 0)
        return nullptr;
    auto* step = static_cast<ProxyStep*>(handle);
    return step->used ? step : nullptr;
}

ProxyOp& opOf(ProxyStep& step) noexcept {
    size_t offset = 0;
    return *opAround(&step, offset);
}

void changeProxyOp(ProxyOp& op, int state, const void* arguments) noexcept {
    if (!op.isRecorded) return;
    if (state == profiler_abi::kProxyOpInProgress) {
        op.record.startNs = g_session.now();  // until now it stood behind other ops of the connection
    } else if (op.record.pluginVersion == 3 && state <= profiler_abi::kLastProxyOpStateV3 && arguments != nullptr) {
        size_t sum = 0;  // version 3 tells the op's sum so far
        std::memcpy(&sum, arguments, sizeof sum);
        if (sum > op.record.bytes) op.record.bytes = sum;
    }
}

void changeProxyStep(ProxyStep& step, int state, const void* arguments) noexcept {
    ProxyOp& op = opOf(step);
    const ProxyWait wait = waitOfState(state);
    if (!op.isRecorded || wait == ProxyWait::none || wait == step.wait) return;
    enter(op, step, wait, g_session.now());
    const bool tellsSize = state == profiler_abi::kSendWait || state == profiler_abi::kRecvFlushWait;
    if (!tellsSize || arguments == nullptr || op.record.pluginVersion == 3) return;
    size_t bytes = 0;
    std::memcpy(&bytes, arguments, sizeof bytes);
    op.record.bytes += bytes;
}

void endProxyOp(ProxyOp& op) noexcept {
    if (op.isRecorded && g_session.mode() != Mode::off) {
        op.record.endNs = g_session.now();
        for (ProxyStep& step : op.steps) enter(op, step, ProxyWait::none, op.record.endNs);
        op.record.gpuWaitNs = op.waitNs[static_cast<size_t>(ProxyWait::gpu)];
        op.record.peerWaitNs = op.waitNs[static_cast<size_t>(ProxyWait::peer)];
        op.record.networkWaitNs = op.waitNs[static_cast<size_t>(ProxyWait::network)];
        // Its stamps say nothing about how far the job's own threads are.
        g_session.push(op.record, 0);
        if (g_pool.lost.load(std::memory_order_relaxed) != 0) tellLostProxyOps();
    }
    op.used.store(false, std::memory_order_release);
}

void endProxyStep(ProxyStep& step) noexcept {
    ProxyOp& op = opOf(step);
    if (op.isRecorded) enter(op, step, ProxyWait::none, g_session.now());
    step.used = false;
}

void tellLostProxyOps() noexcept {
    const ErrnoKeeper keep;
    const uint64_t lost = g_pool.lost.exchange(0, std::memory_order_relaxed);
    if (lost != 0)
        g_session.sink().countLoss(capture::Source::ncclPlugin, capture::LossKind::poolExhausted, lost,
                                   g_session.now());
}

}  // namespace rankscope::injector
