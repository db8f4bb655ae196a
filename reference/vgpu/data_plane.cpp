// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/data_plane.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>

namespace rankscope::vgpu {
namespace {

DataPlane* g_plane = nullptr;

// The bell tells of data from other ranks; what another stream of this process did is only seen by looking.
constexpr int kWaiterPollMs = 10, kHelperFirstPollMs = 5, kHelperLastPollMs = 80;

void sleepUntilRung(Process& process, uint32_t bell, int timeoutMs) {
    process.dataSleepers.fetch_add(1);
    futexWait(process.dataBell, bell, timeoutMs);
    process.dataSleepers.fetch_sub(1);
}

}  // namespace

DataPlane& DataPlane::instance() {
    static std::mutex mutex;
    std::lock_guard guard(mutex);
    if (!g_plane) g_plane = new DataPlane;    // lives until the process ends
    return *g_plane;
}

void DataPlane::forgetAfterFork() { g_plane = nullptr; }

bool DataPlane::done(StreamPoint point) const {
    auto it = m_blocked.find(point.stream);
    return it == m_blocked.end() || it->second.empty() || it->second.front().seq > point.seq;
}

void DataPlane::enqueue(StreamPoint at, std::function<bool()> attempt) {
    auto& blocked = m_blocked[at.stream];
    if (!blocked.empty()) pump();
    if (blocked.empty() && attempt()) return;
    blocked.push_back({at.seq, std::move(attempt)});
    startHelper();
}

void DataPlane::enqueueDependency(StreamPoint at, StreamPoint dependency) {
    if (done(dependency) && done({at.stream, at.seq})) return;
    enqueue(at, [this, dependency] { return done(dependency); });
}

bool DataPlane::pump() {
    bool blocked = false;
    for (bool moved = true; moved;) {
        moved = false;
        blocked = false;
        for (auto& [stream, queue] : m_blocked) {
            while (!queue.empty() && queue.front().attempt()) {
                queue.pop_front();
                moved = true;
            }
            blocked |= !queue.empty();
        }
    }
    return !blocked;
}

void DataPlane::waitFor(std::span<const StreamPoint> points) {
    LocalProcess& process = LocalProcess::instance();
    Process& shared = process.arena().processes[process.index()];
    std::unique_lock lock(process.mutex());
    if (m_blocked.empty()) return;
    m_waiters++;
    for (;;) {
        const uint32_t bell = shared.dataBell.load();
        pump();
        if (std::all_of(points.begin(), points.end(), [&](StreamPoint point) { return done(point); })) break;
        lock.unlock();
        sleepUntilRung(shared, bell, kWaiterPollMs);
        lock.lock();
    }
    m_waiters--;
}

// Peers must get our contributions even while all our threads sleep outside CUDA, so somebody has to go on pumping.
void DataPlane::startHelper() {
    if (m_helperRuns) return;
    m_helperRuns = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);    // signals belong to the job's own threads
    std::thread([this] {
        LocalProcess& process = LocalProcess::instance();
        Process& shared = process.arena().processes[process.index()];
        int pauseMs = kHelperFirstPollMs;
        for (;;) {
            const uint32_t bell = shared.dataBell.load();
            {
                std::lock_guard guard(process.mutex());
                if (m_waiters == 0 && pump()) {
                    m_helperRuns = false;
                    return;
                }
            }
            sleepUntilRung(shared, bell, pauseMs);
            pauseMs = std::min(2 * pauseMs, kHelperLastPollMs);
        }
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace rankscope::vgpu
