// SPDX-License-Identifier: Apache-2.0
// What streams do: their operations begin, run at the rate the device allows, end, and release those that wait for
// them.
#include <vector>

#include "reference/vgpu/engine/engine.h"
#include "reference/vgpu/engine/engine_events.h"

namespace rankscope::vgpu {

bool Engine::drain(uint32_t root) {
    bool moved = false;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        Process& process = m_arena.processes[p];
        uint64_t end = process.submitted.load(std::memory_order_acquire);
        uint64_t begin = process.drained.load(std::memory_order_relaxed);
        if (begin == end) continue;
        moved = true;
        Queues& queues = m_arena.queues[p];
        for (; begin != end; begin++) {
            uint32_t opIndex = queues.submission[begin % kOpsPerProcess];
            if (!process.alive) continue;
            Op& op = queues.ops[opIndex];
            Stream& stream = m_arena.streams[op.stream];
            op.next = kNone;
            op.state = OpState::queued;
            if (stream.head == kNone) {
                stream.head = stream.tail = opIndex;
                schedule(stream, op.stream);
            } else {
                queues.ops[stream.tail].next = opIndex;
                stream.tail = opIndex;
            }
        }
        process.drained.store(end, std::memory_order_release);
    }
    return moved;
}

uint64_t Engine::orderOf(const Stream& stream) const {
    return (static_cast<uint64_t>(static_cast<uint32_t>(m_arena.devices[stream.device].rank) & 0xffffu) << 32) |
           (static_cast<uint64_t>(m_arena.devices[stream.device].ordinal & 0xffu) << 24) | (stream.ordinal & 0xffffffu);
}

void Engine::schedule(Stream& stream, uint32_t streamIndex) {
    const Op& op = m_arena.queues[stream.process].ops[stream.head];
    stream.state = StreamState::scheduled;
    push(rootOf(stream.process),
         {std::max(op.readyNs, stream.lastEndNs), orderOf(stream), kStreamReady, streamIndex, ++stream.version, 0});
}

void Engine::continueStream(uint32_t streamIndex, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Queues& queues = m_arena.queues[stream.process];
    while (stream.head != kNone) {
        Op& op = queues.ops[stream.head];
        if (op.readyNs > nowNs) return schedule(stream, streamIndex);
        op.startNs = nowNs;
        switch (op.kind) {
            case OpKind::wait:
                if (!finished(m_arena, op.depStream, op.depSeq)) {
                    Stream& other = m_arena.streams[op.depStream];
                    stream.state = StreamState::blocked;
                    stream.version++;
                    stream.nextWaiter = other.firstWaiter;
                    other.firstWaiter = streamIndex;
                    return;
                }
                break;
            case OpKind::transfer:
                return arrive(stream, op, nowNs);
            default:
                if (op.workNs > 0) return startWork(stream, streamIndex, op, nowNs);
                break;
        }
        finish(streamIndex, nowNs);
    }
    stream.state = StreamState::idle;
}

void Engine::startWork(Stream& stream, uint32_t streamIndex, Op& op, int64_t nowNs) {
    const Device& device = m_arena.devices[stream.device];
    stream.state = StreamState::running;
    op.state = OpState::running;
    op.remainingNs = static_cast<double>(op.workNs);
    op.rate = op.contended && device.residentTransfers ? device.slowedRate : 1.0;
    op.updatedNs = nowNs;
    if (op.contended) changeCompute(stream.device, +1);
    scheduleEnd(stream, streamIndex, op, nowNs);
}

void Engine::scheduleEnd(Stream& stream, uint32_t streamIndex, Op& op, int64_t nowNs) {
    push(rootOf(stream.process),
         {endOfWork(nowNs, op.remainingNs, op.rate), orderOf(stream), kWorkEnds, streamIndex, ++stream.version, 0});
}

void Engine::finish(uint32_t streamIndex, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Process& process = m_arena.processes[stream.process];
    Queues& queues = m_arena.queues[stream.process];
    uint32_t opIndex = stream.head;
    Op& op = queues.ops[opIndex];
    if (op.contended && op.state == OpState::running) changeCompute(stream.device, -1);
    op.endNs = nowNs;
    op.state = OpState::done;
    stream.head = op.next;
    if (stream.head == kNone) stream.tail = kNone;
    stream.lastEndNs = nowNs;
    stream.endNs[op.seq % kStreamHistory].store(nowNs, std::memory_order_relaxed);
    stream.finishedSeq.store(op.seq, std::memory_order_release);
    uint64_t slot = process.finished.load(std::memory_order_relaxed);
    queues.completion[slot % kOpsPerProcess] = opIndex;
    process.finished.store(slot + 1, std::memory_order_release);  // from here on the op belongs to its process again
    wakeThreads(stream.process);

    std::vector<uint32_t> released;
    uint32_t* link = &stream.firstWaiter;
    while (*link != kNone) {
        Stream& waiter = m_arena.streams[*link];
        const Op& wait = m_arena.queues[waiter.process].ops[waiter.head];
        if (finished(m_arena, wait.depStream, wait.depSeq)) {
            released.push_back(*link);
            *link = waiter.nextWaiter;
        } else {
            link = &waiter.nextWaiter;
        }
    }
    for (uint32_t waiter : released) continueStream(waiter, nowNs);
}

/// Transfers are slower while a device at their end computes.
void Engine::changeCompute(uint32_t deviceIndex, int direction) {
    Device& device = m_arena.devices[deviceIndex];
    const bool before = device.residentKernels != 0;
    device.residentKernels += static_cast<uint32_t>(direction);
    if (device.slowedTraffic == 1.0 || before == (device.residentKernels != 0)) return;
    for (Port* port : {&device.out, &device.in, &device.nicOut, &device.nicIn}) port->changes++;
    m_arena.processes[rootOf(device.process)].flowsDirty = 1;
}

void Engine::changeResidents(uint32_t deviceIndex, int direction, int64_t nowNs) {
    Device& device = m_arena.devices[deviceIndex];
    uint32_t before = device.residentTransfers;
    device.residentTransfers += static_cast<uint32_t>(direction);
    if (device.slowedRate == 1.0 || (before != 0) == (device.residentTransfers != 0)) return;
    double rate = device.residentTransfers ? device.slowedRate : 1.0;
    Process& process = m_arena.processes[device.process];
    for (uint32_t s = process.firstStream; s != kNone; s = m_arena.streams[s].nextOfProcess) {
        Stream& stream = m_arena.streams[s];
        if (stream.device != deviceIndex || stream.state != StreamState::running || stream.head == kNone) continue;
        Op& op = m_arena.queues[device.process].ops[stream.head];
        if (op.kind != OpKind::kernel || !op.contended) continue;
        op.remainingNs -= op.rate * static_cast<double>(nowNs - op.updatedNs);
        op.updatedNs = nowNs;
        op.rate = rate;
        scheduleEnd(stream, s, op, nowNs);
    }
}

}  // namespace rankscope::vgpu
