// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/thread_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "reference/vgpu/device/deadlock.h"

namespace rankscope::vgpu {
namespace {

std::string threadName(const Process& process, int32_t tid) {
    char path[64], text[32] = "";
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/comm", process.pid, tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "?";
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length > 0 && text[length - 1] == '\n') text[length - 1] = 0;
    return text;
}

const char* nameOf(TransferKind kind) {
    switch (kind) {
        case TransferKind::allReduce:
            return "an all-reduce";
        case TransferKind::allGather:
            return "an all-gather";
        case TransferKind::reduceScatter:
            return "a reduce-scatter";
        case TransferKind::broadcast:
            return "a broadcast";
        case TransferKind::reduce:
            return "a reduce";
        case TransferKind::allToAll:
            return "an all-to-all";
        case TransferKind::gather:
            return "a gather";
        case TransferKind::scatter:
            return "a scatter";
        case TransferKind::p2p:
            return "a message";
    }
    return "a transfer";
}

std::string rankText(const Arena& arena, const Comm& comm, uint32_t member) {
    const Process& process = arena.processes[arena.members[comm.firstMember + member].process];
    return std::to_string(process.rank >= 0 ? process.rank : static_cast<int32_t>(member)) +
           (process.alive ? "" : ", which has ended");
}

const Transfer* openTransfer(const Arena& arena, const Part& part) {
    const bool isMessage = part.kind == TransferKind::p2p;
    const uint32_t src = isMessage ? (part.isSend ? part.member : part.peer) : 0;
    const uint32_t dst = isMessage ? (part.isSend ? part.peer : part.member) : 0;
    for (uint32_t t = arena.comms[part.comm].openTransfers[bucketOf(part.key, src, dst)]; t != kNone;
         t = arena.transfers[t].next) {
        const Transfer& transfer = arena.transfers[t];
        if (transfer.key == part.key && (transfer.kind == TransferKind::p2p) == isMessage && transfer.src == src &&
            transfer.dst == dst)
            return &transfer;
    }
    return nullptr;
}

/// Of a collective or message that does not begin: who is missing, or that its members want different things.
std::string whatIsMissing(const Arena& arena, const Part& part, const Transfer& transfer) {
    const Comm& comm = arena.comms[part.comm];
    if (transfer.mismatched) return "whose ranks want different things";
    std::vector<bool> isThere(comm.size);
    for (uint32_t packed = transfer.firstPart; packed != kNone;) {
        const Part& other = arena.queues[packed / kPartsPerProcess].parts[packed % kPartsPerProcess];
        if (other.member < comm.size) isThere[other.member] = true;
        packed = other.nextOfTransfer;
    }
    std::string missing;
    constexpr int kNamed = 8;
    int count = 0;
    for (uint32_t member = 0; member < comm.size; member++) {
        const bool isMember = part.kind != TransferKind::p2p || member == transfer.src || member == transfer.dst;
        if (!isMember || isThere[member]) continue;
        if (count < kNamed) missing += (count ? ", " : "") + rankText(arena, comm, member);
        count++;
    }
    if (count > kNamed) missing += " and " + std::to_string(count - kNamed) + " more";
    return "to which rank" + std::string(count == 1 ? " " : "s ") + missing + (count == 1 ? " has" : " have") +
           " not come";
}

/// What a stream cannot get past.
std::string blockerOf(const Arena& arena, uint32_t streamIndex) {
    const Stream* stream = &arena.streams[streamIndex];
    for (uint32_t hops = 0; hops < arena.streamCount && stream->head != kNone; hops++) {
        const Queues& queues = arena.queues[stream->process];
        const Op& op = queues.ops[stream->head];
        if (op.kind == OpKind::wait) {  // for another stream's
            stream = &arena.streams[op.depStream];
            continue;
        }
        if (op.kind != OpKind::transfer) return "";
        for (uint32_t p = op.firstPart; p != kNone; p = queues.parts[p].next) {
            const Part& part = queues.parts[p];
            const Transfer* transfer = openTransfer(arena, part);
            if (!transfer || transfer->flowing || (transfer->arrived >= transfer->expected && !transfer->mismatched))
                continue;
            return ": stands at " + std::string(nameOf(part.kind)) + " of communicator " + std::to_string(part.comm) +
                   " (" + std::to_string(arena.comms[part.comm].size) + " ranks), " +
                   whatIsMissing(arena, part, *transfer);
        }
        return "";
    }
    return "";
}

std::string whereItStands(const Arena& arena, const HostThread& thread) {
    switch (thread.state.load()) {
        case ThreadState::running:
            return "runs";
        case ThreadState::parked:
            return std::string("is blocked in ") + thread.inCall;
        case ThreadState::observing:
            return "looks on";
        case ThreadState::waiting:
            break;
        case ThreadState::free:
            return "has ended";
    }
    switch (thread.waitKind) {
        case WaitKind::ops:
            return "waits for stream " + std::to_string(arena.streams[thread.waitStream[0]].ordinal) + ", operation " +
                   std::to_string(thread.waitSeq[0]) + blockerOf(arena, thread.waitStream[0]);
        case WaitKind::comm:
            return "waits for the members of communicator " + std::to_string(thread.waitComm);
        case WaitKind::turn:
            return "waits for earlier threads of its process";
        default:
            return "waits for virtual time";
    }
}

std::string lineOf(const Arena& arena, const HostThread& thread) {
    const Process& process = arena.processes[thread.process];
    char who[128], since[48];
    std::snprintf(who, sizeof who, "rank %d, process %d, thread %d '%s' ", process.rank, process.pid, thread.tid,
                  threadName(process, thread.tid).c_str());
    std::snprintf(since, sizeof since, "; since %.6f ms", static_cast<double>(thread.boundNs.load() - kEpochNs) / 1e6);
    return who + whereItStands(arena, thread) + since;
}

}  // namespace

void reportThreads(const Arena& arena, int stalledMs, bool isForEver) {
    std::string text = "rankscope virtual GPUs: the job has stood still for " + std::to_string(stalledMs / 1000) +
                       " s: each of its threads waits for another one (virtual time)\n";
    for (uint32_t p = 0; p < arena.processCount; p++) {
        if (!arena.processes[p].alive) continue;
        for (uint32_t t = arena.processes[p].firstThread; t != kNone; t = arena.threads[t].nextOfProcess)
            text += "  " + lineOf(arena, arena.threads[t]) + "\n";
    }
    if (isForEver)
        text +=
            "rankscope virtual GPUs: this is a deadlock: no rank can go on, and the job ends here (each rank with exit "
            "status " +
            std::to_string(kExitDeadlock) +
            ")\n  hint: rankscope analyze tells which calls of which ranks do not fit together\n";
    std::fputs(text.c_str(), stderr);
}

void reportGivenUp(const Arena& arena, const HostThread& thread) {
    std::fprintf(stderr,
                 "rankscope virtual GPUs: the job goes on without a thread that is blocked or spins in a way that is "
                 "not seen; from here "
                 "on its times are not reproducible: %s\n",
                 lineOf(arena, thread).c_str());
}

}  // namespace rankscope::vgpu
