// SPDX-License-Identifier: Apache-2.0
// What collectives and messages do: members arrive, alpha passes, bytes flow at the rate their links allow; all end
// together, but for rings with a slow edge, whose members end as the last chunks pass them.
#include <vector>

#include "reference/vgpu/engine/engine.h"
#include "reference/vgpu/engine/engine_events.h"
#include "reference/vgpu/engine/links.h"

namespace rankscope::vgpu {

void Engine::abortTransfers(uint32_t streamIndex, uint32_t comm, int64_t nowNs) {
    Stream& stream = m_arena.streams[streamIndex];
    Queues& queues = m_arena.queues[stream.process];
    drain(rootOf(stream.process));
    bool runs = false;
    for (uint32_t o = stream.head; o != kNone; o = queues.ops[o].next) {
        Op& op = queues.ops[o];
        if (op.kind != OpKind::transfer || queues.parts[op.firstPart].comm != comm) continue;
        runs |= op.state == OpState::running;
        op.kind = OpKind::host;  // what is left of it takes no time
        op.workNs = 0;
    }
    if (!runs) return;
    changeResidents(stream.device, -1, nowNs);
    Process& island = m_arena.processes[rootOf(stream.process)];
    int64_t atNs = std::max(nowNs, island.nowNs);
    // The transfers it takes part in never end for the others: they lose this part.
    for (uint32_t p = queues.ops[stream.head].firstPart; p != kNone; p = queues.parts[p].next)
        forgetPart(stream.process, p);
    finish(streamIndex, atNs);
    continueStream(streamIndex, atNs);
}

void Engine::forgetPart(uint32_t processIndex, uint32_t partIndex) {
    const Part& part = m_arena.queues[processIndex].parts[partIndex];
    uint32_t packed = processIndex * kPartsPerProcess + partIndex;
    for (uint32_t& head : m_arena.comms[part.comm].openTransfers) {
        for (uint32_t t = head; t != kNone; t = m_arena.transfers[t].next) {
            for (uint32_t* link = &m_arena.transfers[t].firstPart; *link != kNone;) {
                Part& other = m_arena.queues[*link / kPartsPerProcess].parts[*link % kPartsPerProcess];
                if (*link == packed)
                    *link = other.nextOfTransfer;
                else
                    link = &other.nextOfTransfer;
            }
        }
    }
}

Transfer& Engine::transferOf(const Part& part, const Op& op) {
    Comm& comm = m_arena.comms[part.comm];
    bool p2p = part.kind == TransferKind::p2p;
    uint32_t src = p2p ? (part.isSend ? part.member : part.peer) : 0;
    uint32_t dst = p2p ? (part.isSend ? part.peer : part.member) : 0;
    uint32_t& head = comm.openTransfers[bucketOf(part.key, src, dst)];
    for (uint32_t t = head; t != kNone; t = m_arena.transfers[t].next) {
        Transfer& transfer = m_arena.transfers[t];
        if (transfer.key == part.key && (transfer.kind == TransferKind::p2p) == p2p && transfer.src == src &&
            transfer.dst == dst)
            return transfer;
    }
    uint32_t index = m_arena.freeTransfer;
    if (index != kNone)
        m_arena.freeTransfer = m_arena.transfers[index].next;
    else if (m_arena.transferCount < kMaxTransfers)
        index = m_arena.transferCount++;
    else
        refuseMore("open transfers", kMaxTransfers);
    Transfer& transfer = m_arena.transfers[index];
    uint32_t version = transfer.version + 1;  // events of the slot's former user are stale
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
    Queues& queues = m_arena.queues[stream.process];
    stream.state = StreamState::running;
    stream.version++;
    op.state = OpState::running;
    changeResidents(stream.device, +1, nowNs);
    for (uint32_t p = op.firstPart; p != kNone; p = queues.parts[p].next) {
        Part& part = queues.parts[p];
        Transfer& transfer = transferOf(part, op);
        part.nextOfTransfer = transfer.firstPart;
        // A part is named by process and index; the list packs both.
        transfer.firstPart = stream.process * kPartsPerProcess + p;
        if (transfer.arrived++ == 0) {
            transfer.fingerprint = part.fingerprint;
        } else if (transfer.fingerprint != part.fingerprint) {
            transfer.mismatched = 1;  // as with NCCL, nobody gets out of it
        }
        if (part.member < transfer.lowestMember) {
            transfer.lowestMember = part.member;
            transfer.latencyNs = part.latencyNs;
            transfer.busBytes = part.busBytes;
            transfer.efficiency = part.efficiency;
            transfer.networkShare = part.networkShare;
            transfer.chunkBytes = part.chunkBytes;
        }
        transfer.lastArrivalNs = std::max(transfer.lastArrivalNs, nowNs);  // arrivals may be seen out of order
        if (transfer.arrived == transfer.expected && !transfer.mismatched)
            push(rootOf(stream.process), {transfer.lastArrivalNs + transfer.latencyNs, transfer.orderKey, kFlowBegins,
                                          static_cast<uint32_t>(&transfer - m_arena.transfers), transfer.version, 0});
    }
}

void Engine::beginFlow(Transfer& transfer, int64_t nowNs) {
    if (transfer.busBytes <= 0) return endTransfer(transfer, nowNs);
    auto index = static_cast<uint32_t>(&transfer - m_arena.transfers);
    Process& island = m_arena.processes[rootOf(transfer.island)];
    transfer.flowing = 1;
    transfer.remaining = transfer.busBytes;
    for (uint32_t packed = transfer.firstPart; packed != kNone;) {
        Part& part = m_arena.queues[packed / kPartsPerProcess].parts[packed % kPartsPerProcess];
        part.flowBeginNs = nowNs;
        packed = part.nextOfTransfer;
    }
    planLeaving(transfer);
    transfer.rate = 0;
    transfer.updatedNs = nowNs;
    transfer.prevActive = kNone;
    transfer.nextActive = island.firstFlow;
    if (island.firstFlow != kNone) m_arena.transfers[island.firstFlow].prevActive = index;
    island.firstFlow = index;
    countFlow(m_arena, transfer, +1);
    island.flowsDirty = 1;
}

void Engine::endFlow(Transfer& transfer, int64_t nowNs) {
    if (transfer.dueNs > nowNs) {
        transfer.scheduledNs = transfer.dueNs;
        push(rootOf(transfer.island), {transfer.dueNs, transfer.orderKey, kFlowEnds,
                                       static_cast<uint32_t>(&transfer - m_arena.transfers), transfer.version, 0});
        return;
    }
    if (transfer.nextLeadBytes > 0) {
        const std::vector<uint32_t> streams = takeLeaving(transfer);
        transfer.dueNs = transfer.scheduledNs =
            endOfWork(transfer.updatedNs, transfer.remaining - transfer.nextLeadBytes, transfer.rate);
        push(rootOf(transfer.island), {transfer.dueNs, transfer.orderKey, kFlowEnds,
                                       static_cast<uint32_t>(&transfer - m_arena.transfers), transfer.version, 0});
        return leave(streams, nowNs);
    }
    countFlow(m_arena, transfer, -1);
    Process& island = m_arena.processes[rootOf(transfer.island)];
    island.flowsDirty = 1;
    if (transfer.prevActive == kNone)
        island.firstFlow = transfer.nextActive;
    else
        m_arena.transfers[transfer.prevActive].nextActive = transfer.nextActive;
    if (transfer.nextActive != kNone) m_arena.transfers[transfer.nextActive].prevActive = transfer.prevActive;
    endTransfer(transfer, nowNs);
}

void Engine::updateFlows(uint32_t root, int64_t nowNs) {
    Process& island = m_arena.processes[root];
    island.flowsDirty = 0;
    for (uint32_t index = island.firstFlow; index != kNone; index = m_arena.transfers[index].nextActive) {
        Transfer& transfer = m_arena.transfers[index];
        if (transfer.kind == TransferKind::p2p) {  // an all-to-all has one for each pair: most are not concerned
            const uint32_t changes = portChanges(m_arena, transfer);
            if (transfer.rate != 0 && changes == transfer.portChanges) continue;
            transfer.portChanges = changes;
        }
        double rate = flowRate(m_arena, transfer);
        if (rate == transfer.rate) continue;
        const bool isNew = transfer.rate == 0;
        transfer.remaining -= transfer.rate * static_cast<double>(nowNs - transfer.updatedNs);
        transfer.updatedNs = nowNs;
        transfer.rate = rate;
        transfer.dueNs = endOfWork(nowNs, transfer.remaining - transfer.nextLeadBytes, rate);
        if (isNew ||
            transfer.dueNs < transfer.scheduledNs) {  // one that has become slower looks again when its event comes
            transfer.scheduledNs = transfer.dueNs;
            push(root, {transfer.dueNs, transfer.orderKey, kFlowEnds, index, ++transfer.version, 0});
        }
    }
}

/// Sets what the flow has left when each member leaves. Nobody leaves before the flow begins, which is after the last
/// arrival.
void Engine::planLeaving(Transfer& transfer) {
    transfer.nextLeadBytes = 0;
    if (transfer.chunkBytes <= 0) return;
    const std::vector<double> chunks = ringLeads(m_arena, m_arena.comms[transfer.comm]);
    for (uint32_t packed = transfer.firstPart; packed != kNone;) {
        Part& part = m_arena.queues[packed / kPartsPerProcess].parts[packed % kPartsPerProcess];
        part.leadBytes = chunks.empty() ? 0 : std::min(transfer.busBytes, chunks[part.member] * transfer.chunkBytes);
        transfer.nextLeadBytes = std::max(transfer.nextLeadBytes, part.leadBytes);
        packed = part.nextOfTransfer;
    }
}

/// Takes out the members that leave now, and looks up when the next ones do. Returns the streams that go on. A part
/// that has left belongs to its process again, so it must not stay in the list.
std::vector<uint32_t> Engine::takeLeaving(Transfer& transfer) {
    std::vector<uint32_t> streams;
    double next = 0;
    for (uint32_t* link = &transfer.firstPart; *link != kNone;) {
        const uint32_t process = *link / kPartsPerProcess;
        Part& part = m_arena.queues[process].parts[*link % kPartsPerProcess];
        if (part.leadBytes < transfer.nextLeadBytes) {
            next = std::max(next, part.leadBytes);
            link = &part.nextOfTransfer;
            continue;
        }
        *link = part.nextOfTransfer;
        part.flowEndNs = transfer.dueNs;
        if (!m_arena.processes[process].alive) continue;
        Op& op = m_arena.queues[process].ops[part.op];
        if (--op.pendingParts == 0) streams.push_back(op.stream);
    }
    transfer.nextLeadBytes = next;
    return streams;
}

void Engine::endTransfer(Transfer& transfer, int64_t nowNs) {
    std::vector<uint32_t> streams;
    for (uint32_t packed = transfer.firstPart; packed != kNone;) {
        const uint32_t process = packed / kPartsPerProcess;
        Part& part = m_arena.queues[process].parts[packed % kPartsPerProcess];
        packed = part.nextOfTransfer;
        part.flowEndNs = nowNs;
        if (!m_arena.processes[process].alive) continue;
        Op& op = m_arena.queues[process].ops[part.op];
        if (--op.pendingParts == 0) streams.push_back(op.stream);
    }
    release(transfer);
    leave(streams, nowNs);
}

void Engine::leave(const std::vector<uint32_t>& streams, int64_t nowNs) {
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

}  // namespace rankscope::vgpu
