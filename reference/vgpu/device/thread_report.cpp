// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/thread_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

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
                   std::to_string(thread.waitSeq[0]);
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
    char text[256];
    std::snprintf(text, sizeof text, "rank %d, process %d, thread %d '%s' %s since %.6f ms", process.rank, process.pid,
                  thread.tid, threadName(process, thread.tid).c_str(), whereItStands(arena, thread).c_str(),
                  static_cast<double>(thread.boundNs.load() - kEpochNs) / 1e6);
    return text;
}

}  // namespace

void reportThreads(const Arena& arena, int stalledMs) {
    std::string text = "rankscope virtual GPUs: the job has stood still for " + std::to_string(stalledMs / 1000) +
                       " s: each of its threads waits for another one (virtual time)\n";
    for (uint32_t p = 0; p < arena.processCount; p++) {
        if (!arena.processes[p].alive) continue;
        for (uint32_t t = arena.processes[p].firstThread; t != kNone; t = arena.threads[t].nextOfProcess)
            text += "  " + lineOf(arena, arena.threads[t]) + "\n";
    }
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
