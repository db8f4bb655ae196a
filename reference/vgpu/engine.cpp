// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine.h"

#include <algorithm>
#include <cmath>

#include "reference/vgpu/links.h"

namespace rankscope::vgpu {
namespace {

enum EventKind : uint32_t { kStreamReady, kWorkEnds, kFlowBegins, kFlowEnds };

/// What a host thread spends between the end of what it waited for and its next instruction.
constexpr int64_t kWakeNs = 1500;

bool later(const HeapEntry& a, const HeapEntry& b) {
    if (a.timeNs != b.timeNs) return a.timeNs > b.timeNs;
    if (a.order != b.order) return a.order > b.order;
    return a.kind > b.kind;
}

int64_t endOf(int64_t nowNs, double remaining, double rate) {
    return nowNs + static_cast<int64_t>(std::ceil(std::max(0.0, remaining) / rate));
}

bool finished(const Arena& arena, uint32_t stream, uint64_t seq) {
    return arena.streams[stream].finishedSeq.load(std::memory_order_acquire) >= seq;
}

}  // namespace

int64_t Engine::boundOf(uint32_t root) const {
    int64_t bound = kForever;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            const HostThread& thread = m_arena.threads[t];
            switch (thread.state.load(std::memory_order_acquire)) {
                case ThreadState::running: bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire)); break;
                case ThreadState::waiting:
                    // A thread in a rendezvous goes on when members come whose clocks this island does not know.
                    if (thread.waitKind == WaitKind::comm) bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire));
                    if (thread.waitKind == WaitKind::until) bound = std::min(bound, thread.waitUntilNs);
                    break;
                case ThreadState::free:
                case ThreadState::excluded: break;
            }
        }
    }
    return bound;
}

bool Engine::advance(uint32_t process) {
    bool progressed = false;
    uint32_t root = rootOf(process);
    for (;;) {
        // Bounds first, submissions second: what is submitted after the look at a bound carries a later host time.
        int64_t bound = boundOf(root);
        m_limitNs = bound == kForever ? kForever : bound + m_arena.launchNs;
        bool moved = drain(root);
        Process& island = m_arena.processes[root];
        for (;;) {
            if (island.flowsDirty && (island.heapSize == 0 || island.heap[0].timeNs > island.nowNs)) {
                updateFlows(root, island.nowNs);
                continue;
            }
            if (island.heapSize == 0 || island.heap[0].timeNs >= m_limitNs) break;
            HeapEntry entry = pop(island);
            island.nowNs = entry.timeNs;
            handle(entry);
            moved = true;
        }
        if (settleQueries(root)) moved = true;
        if (!moved) break;
        progressed = true;
    }
    if (progressed) m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    return progressed;
}

bool Engine::advanceQuiescent() {
    uint32_t live = 0;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        const Process& process = m_arena.processes[p];
        if (!process.alive) continue;
        live++;
        for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess)
            if (m_arena.threads[t].state == ThreadState::running) return false;
    }
    // A member that has not come to life yet is a thread that still runs.
    for (uint32_t c = 0; c < m_arena.commCount; c++) {
        const Comm& comm = m_arena.comms[c];
        if (comm.inUse && !comm.complete && comm.size > live) return false;
    }
    uint32_t root = kNone;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        Process& island = m_arena.processes[p];
        if (island.island != p) continue;
        if (drain(p)) return true;
        if (island.flowsDirty) updateFlows(p, island.nowNs);
        if (island.heapSize && (root == kNone || later(m_arena.processes[root].heap[0], island.heap[0]))) root = p;
    }
    if (root == kNone) return false;
    HeapEntry entry = pop(m_arena.processes[root]);
    m_arena.processes[root].nowNs = entry.timeNs;
    handle(entry);
    m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void Engine::mergeIslands(uint32_t processA, uint32_t processB) {
    uint32_t a = rootOf(processA), b = rootOf(processB);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    Process& kept = m_arena.processes[a];
    Process& gone = m_arena.processes[b];
    uint32_t last = a;
    while (m_arena.processes[last].nextOfIsland != kNone) last = m_arena.processes[last].nextOfIsland;
    m_arena.processes[last].nextOfIsland = b;
    for (uint32_t p = b; p != kNone; p = m_arena.processes[p].nextOfIsland) m_arena.processes[p].island = a;
    for (uint32_t i = 0; i < gone.heapSize; i++) push(a, gone.heap[i]);
    gone.heapSize = 0;
    while (gone.firstFlow != kNone) {
        uint32_t index = gone.firstFlow;
        Transfer& transfer = m_arena.transfers[index];
        gone.firstFlow = transfer.nextActive;
        transfer.nextActive = kept.firstFlow;
        transfer.prevActive = kNone;
        if (kept.firstFlow != kNone) m_arena.transfers[kept.firstFlow].prevActive = index;
        kept.firstFlow = index;
    }
    kept.flowsDirty |= gone.flowsDirty;
    kept.nowNs = std::max(kept.nowNs, gone.nowNs);
}

void Engine::removeProcess(uint32_t index) {
    Process& process = m_arena.processes[index];
    process.alive = 0;
    for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        HostThread& thread = m_arena.threads[t];
        process.lastClockNs = std::max(process.lastClockNs, thread.boundNs.load());
        thread.state = ThreadState::free;
    }
    for (uint32_t s = process.firstStream; s != kNone; s = m_arena.streams[s].nextOfProcess) {
        Stream& stream = m_arena.streams[s];
        stream.head = stream.tail = kNone;
        stream.state = StreamState::idle;
        stream.version++;
    }
    m_arena.progress.fetch_add(1, std::memory_order_relaxed);
}

void Engine::abortTransfers(uint32_t streamIndex, uint32_t comm, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Process& process = m_arena.processes[stream.process];
    drain(rootOf(stream.process));
    bool runs = false;
    for (uint32_t o = stream.head; o != kNone; o = process.ops[o].next) {
        Op& op = process.ops[o];
        if (op.kind != OpKind::transfer || process.parts[op.firstPart].comm != comm) continue;
        runs |= op.state == OpState::running;
        op.kind = OpKind::host;    // what is left of it takes no time
        op.workNs = 0;
    }
    if (!runs) return;
    changeResidents(stream.device, -1, nowNs);
    Process& island = m_arena.processes[rootOf(stream.process)];
    int64_t atNs = std::max(nowNs, island.nowNs);
    // The transfers it takes part in never end for the others: they lose this part.
    for (uint32_t p = process.ops[stream.head].firstPart; p != kNone; p = process.parts[p].next) forgetPart(stream.process, p);
    finish(streamIndex, atNs);
    continueStream(streamIndex, atNs);
}

void Engine::forgetPart(uint32_t processIndex, uint32_t partIndex) {
    const Part& part = m_arena.processes[processIndex].parts[partIndex];
    uint32_t packed = processIndex * kPartsPerProcess + partIndex;
    for (uint32_t& head : m_arena.comms[part.comm].openTransfers) {
        for (uint32_t t = head; t != kNone; t = m_arena.transfers[t].next) {
            for (uint32_t* link = &m_arena.transfers[t].firstPart; *link != kNone;) {
                Part& other = m_arena.processes[*link / kPartsPerProcess].parts[*link % kPartsPerProcess];
                if (*link == packed) *link = other.nextOfTransfer;
                else link = &other.nextOfTransfer;
            }
        }
    }
}

void Engine::resume(HostThread& thread, int64_t ns) {
    thread.resumeNs = ns;
    thread.boundNs.store(ns, std::memory_order_release);
    thread.state.store(ThreadState::running, std::memory_order_release);
    if (m_limitNs != kForever || ns < kForever - m_arena.launchNs) m_limitNs = std::min(m_limitNs, ns + m_arena.launchNs);
    thread.futex.fetch_add(1, std::memory_order_release);
    futexWake(thread.futex);
}

bool Engine::waitSatisfied(const HostThread& thread, int64_t& resumeNs) const {
    resumeNs = thread.boundNs.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < thread.waitCount; i++) {
        const Stream& stream = m_arena.streams[thread.waitStream[i]];
        if (!finished(m_arena, thread.waitStream[i], thread.waitSeq[i])) return false;
        resumeNs = std::max(resumeNs, stream.endNs[thread.waitSeq[i] % kStreamHistory].load(std::memory_order_relaxed));
    }
    if (resumeNs > thread.boundNs.load(std::memory_order_relaxed)) resumeNs += kWakeNs;
    return true;
}

void Engine::wakeThreads(uint32_t process) {
    for (uint32_t t = m_arena.processes[process].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        HostThread& thread = m_arena.threads[t];
        int64_t resumeNs = 0;
        if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::ops && waitSatisfied(thread, resumeNs)) resume(thread, resumeNs);
    }
}

bool Engine::settleQueries(uint32_t root) {
    bool settled = false;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            HostThread& thread = m_arena.threads[t];
            if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::until && thread.waitUntilNs < m_limitNs) {
                resume(thread, thread.waitUntilNs);
                settled = true;
            }
        }
    }
    return settled;
}

bool Engine::drain(uint32_t root) {
    bool moved = false;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        Process& process = m_arena.processes[p];
        uint64_t end = process.submitted.load(std::memory_order_acquire);
        uint64_t begin = process.drained.load(std::memory_order_relaxed);
        if (begin == end) continue;
        moved = true;
        for (; begin != end; begin++) {
            uint32_t opIndex = process.submission[begin % kOpsPerProcess];
            if (!process.alive) continue;
            Op& op = process.ops[opIndex];
            Stream& stream = m_arena.streams[op.stream];
            op.next = kNone;
            op.state = OpState::queued;
            if (stream.head == kNone) {
                stream.head = stream.tail = opIndex;
                schedule(stream, op.stream);
            } else {
                process.ops[stream.tail].next = opIndex;
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

void Engine::push(uint32_t root, HeapEntry entry) {
    Process& island = m_arena.processes[root];
    if (island.heapSize == kHeapEntries) return;    // 16 pending events per stream of a full arena: cannot happen
    uint32_t at = island.heapSize++;
    island.heap[at] = entry;
    std::push_heap(island.heap, island.heap + island.heapSize, later);
}

HeapEntry Engine::pop(Process& root) {
    std::pop_heap(root.heap, root.heap + root.heapSize, later);
    return root.heap[--root.heapSize];
}

void Engine::schedule(Stream& stream, uint32_t streamIndex) {
    const Op& op = m_arena.processes[stream.process].ops[stream.head];
    stream.state = StreamState::scheduled;
    push(rootOf(stream.process),
         {std::max(op.readyNs, stream.lastEndNs), orderOf(stream), kStreamReady, streamIndex, ++stream.version, 0});
}

void Engine::handle(const HeapEntry& entry) {
    switch (entry.kind) {
        case kStreamReady:
            if (m_arena.streams[entry.index].version == entry.version) continueStream(entry.index, entry.timeNs);
            break;
        case kWorkEnds:
            if (m_arena.streams[entry.index].version != entry.version) break;
            finish(entry.index, entry.timeNs);
            continueStream(entry.index, entry.timeNs);
            break;
        case kFlowBegins: beginFlow(m_arena.transfers[entry.index], entry.timeNs); break;
        case kFlowEnds: {
            Transfer& transfer = m_arena.transfers[entry.index];
            if (!transfer.inUse || transfer.version != entry.version) break;
            countFlow(m_arena, transfer, -1);
            Process& island = m_arena.processes[rootOf(transfer.island)];
            island.flowsDirty = 1;
            if (transfer.prevActive == kNone) island.firstFlow = transfer.nextActive;
            else m_arena.transfers[transfer.prevActive].nextActive = transfer.nextActive;
            if (transfer.nextActive != kNone) m_arena.transfers[transfer.nextActive].prevActive = transfer.prevActive;
            endTransfer(transfer, entry.timeNs);
            break;
        }
        default: break;
    }
}

void Engine::continueStream(uint32_t streamIndex, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Process& process = m_arena.processes[stream.process];
    while (stream.head != kNone) {
        Op& op = process.ops[stream.head];
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
            case OpKind::transfer: return arrive(stream, op, nowNs);
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
    scheduleEnd(stream, streamIndex, op, nowNs);
}

void Engine::scheduleEnd(Stream& stream, uint32_t streamIndex, Op& op, int64_t nowNs) {
    push(rootOf(stream.process), {endOf(nowNs, op.remainingNs, op.rate), orderOf(stream), kWorkEnds, streamIndex, ++stream.version, 0});
}

void Engine::finish(uint32_t streamIndex, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Process& process = m_arena.processes[stream.process];
    uint32_t opIndex = stream.head;
    Op& op = process.ops[opIndex];
    op.endNs = nowNs;
    op.state = OpState::done;
    stream.head = op.next;
    if (stream.head == kNone) stream.tail = kNone;
    stream.lastEndNs = nowNs;
    stream.endNs[op.seq % kStreamHistory].store(nowNs, std::memory_order_relaxed);
    stream.finishedSeq.store(op.seq, std::memory_order_release);
    uint64_t slot = process.finished.load(std::memory_order_relaxed);
    process.completion[slot % kOpsPerProcess] = opIndex;
    process.finished.store(slot + 1, std::memory_order_release);    // from here on the op belongs to its process again
    wakeThreads(stream.process);

    std::vector<uint32_t> released;
    uint32_t* link = &stream.firstWaiter;
    while (*link != kNone) {
        Stream& waiter = m_arena.streams[*link];
        const Op& wait = m_arena.processes[waiter.process].ops[waiter.head];
        if (finished(m_arena, wait.depStream, wait.depSeq)) {
            released.push_back(*link);
            *link = waiter.nextWaiter;
        } else {
            link = &waiter.nextWaiter;
        }
    }
    for (uint32_t waiter : released) continueStream(waiter, nowNs);
}

Transfer& Engine::transferOf(const Part& part, const Op& op) {
    Comm& comm = m_arena.comms[part.comm];
    bool p2p = part.kind == TransferKind::p2p;
    uint32_t src = p2p ? (part.isSend ? part.member : part.peer) : 0;
    uint32_t dst = p2p ? (part.isSend ? part.peer : part.member) : 0;
    uint32_t& head = comm.openTransfers[bucketOf(part.key, src, dst)];
    for (uint32_t t = head; t != kNone; t = m_arena.transfers[t].next) {
        Transfer& transfer = m_arena.transfers[t];
        if (transfer.key == part.key && (transfer.kind == TransferKind::p2p) == p2p && transfer.src == src && transfer.dst == dst)
            return transfer;
    }
    uint32_t index = m_arena.freeTransfer;
    if (index != kNone) m_arena.freeTransfer = m_arena.transfers[index].next;
    else index = m_arena.transferCount++ % kMaxTransfers;
    Transfer& transfer = m_arena.transfers[index];
    uint32_t version = transfer.version + 1;    // events of the slot's former user are stale
    transfer = Transfer{};
    transfer.version = version;
    transfer.inUse = 1;
    transfer.comm = part.comm;
    transfer.key = part.key;
    transfer.src = src;
    transfer.dst = dst;
    transfer.kind = part.kind;
    transfer.expected = p2p ? 2 : comm.size;
    transfer.firstPart = kNone;
    transfer.lowestMember = kNone;
    transfer.island = m_arena.streams[op.stream].process;
    transfer.orderKey = (uint64_t{1} << 63) | (comm.hash << 24 >> 1) | (part.key & 0xffffffu);
    transfer.next = head;
    head = index;
    return transfer;
}

void Engine::arrive(Stream& stream, Op& op, int64_t nowNs) {
    Process& process = m_arena.processes[stream.process];
    stream.state = StreamState::running;
    stream.version++;
    op.state = OpState::running;
    changeResidents(stream.device, +1, nowNs);
    for (uint32_t p = op.firstPart; p != kNone; p = process.parts[p].next) {
        Part& part = process.parts[p];
        Transfer& transfer = transferOf(part, op);
        part.nextOfTransfer = transfer.firstPart;
        // A part is named by process and index; the list packs both.
        transfer.firstPart = stream.process * kPartsPerProcess + p;
        if (transfer.arrived++ == 0) {
            transfer.fingerprint = part.fingerprint;
        } else if (transfer.fingerprint != part.fingerprint) {
            transfer.mismatched = 1;    // as with NCCL, nobody gets out of it
        }
        if (part.member < transfer.lowestMember) {
            transfer.lowestMember = part.member;
            transfer.latencyNs = part.latencyNs;
            transfer.busBytes = part.busBytes;
            transfer.efficiency = part.efficiency;
        }
        if (transfer.arrived == transfer.expected && !transfer.mismatched)
            push(rootOf(stream.process), {nowNs + transfer.latencyNs, transfer.orderKey, kFlowBegins,
                                          static_cast<uint32_t>(&transfer - m_arena.transfers), transfer.version, 0});
    }
}

void Engine::beginFlow(Transfer& transfer, int64_t nowNs) {
    if (transfer.busBytes <= 0) return endTransfer(transfer, nowNs);
    auto index = static_cast<uint32_t>(&transfer - m_arena.transfers);
    Process& island = m_arena.processes[rootOf(transfer.island)];
    transfer.flowing = 1;
    transfer.remaining = transfer.busBytes;
    transfer.rate = 0;
    transfer.updatedNs = nowNs;
    transfer.prevActive = kNone;
    transfer.nextActive = island.firstFlow;
    if (island.firstFlow != kNone) m_arena.transfers[island.firstFlow].prevActive = index;
    island.firstFlow = index;
    countFlow(m_arena, transfer, +1);
    island.flowsDirty = 1;
}

void Engine::updateFlows(uint32_t root, int64_t nowNs) {
    Process& island = m_arena.processes[root];
    island.flowsDirty = 0;
    for (uint32_t index = island.firstFlow; index != kNone; index = m_arena.transfers[index].nextActive) {
        Transfer& transfer = m_arena.transfers[index];
        double rate = flowRate(m_arena, transfer);
        if (rate == transfer.rate) continue;
        transfer.remaining -= transfer.rate * static_cast<double>(nowNs - transfer.updatedNs);
        transfer.updatedNs = nowNs;
        transfer.rate = rate;
        push(root, {endOf(nowNs, transfer.remaining, rate), transfer.orderKey, kFlowEnds, index, ++transfer.version, 0});
    }
}

void Engine::endTransfer(Transfer& transfer, int64_t nowNs) {
    std::vector<uint32_t> streams;
    for (uint32_t packed = transfer.firstPart; packed != kNone;) {
        Process& process = m_arena.processes[packed / kPartsPerProcess];
        Part& part = process.parts[packed % kPartsPerProcess];
        packed = part.nextOfTransfer;
        if (!process.alive) continue;
        Op& op = process.ops[part.op];
        if (--op.pendingParts == 0) streams.push_back(op.stream);
    }
    release(transfer);
    for (uint32_t stream : streams) changeResidents(m_arena.streams[stream].device, -1, nowNs);
    for (uint32_t stream : streams) finish(stream, nowNs);
    for (uint32_t stream : streams) continueStream(stream, nowNs);
}

void Engine::release(Transfer& transfer) {
    auto index = static_cast<uint32_t>(&transfer - m_arena.transfers);
    uint32_t* link = &m_arena.comms[transfer.comm].openTransfers[bucketOf(transfer.key, transfer.src, transfer.dst)];
    while (*link != kNone && *link != index) link = &m_arena.transfers[*link].next;
    if (*link == index) *link = transfer.next;
    transfer.inUse = 0;
    transfer.version++;
    transfer.next = m_arena.freeTransfer;
    m_arena.freeTransfer = index;
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
        Op& op = process.ops[stream.head];
        if (op.kind != OpKind::kernel || !op.contended) continue;
        op.remainingNs -= op.rate * static_cast<double>(nowNs - op.updatedNs);
        op.updatedNs = nowNs;
        op.rate = rate;
        scheduleEnd(stream, s, op, nowNs);
    }
}

}  // namespace rankscope::vgpu
