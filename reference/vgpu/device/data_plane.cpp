// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/data_plane.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "reference/vgpu/device/deadlock.h"

namespace rankscope::vgpu {
namespace {

DataPlane* g_plane = nullptr;

// The bell tells of data from other ranks; an aborted communicator is only seen by looking.
constexpr int kWaiterPollMs = 10, kHelperFirstPollMs = 5, kHelperLastPollMs = 80;

[[gnu::tls_model("initial-exec")]] thread_local uint32_t t_effects = 0;

struct InEffects {
    InEffects() { t_effects++; }
    ~InEffects() { t_effects--; }
};

/// False when the time ran out.
bool sleepUntilRung(Process& process, uint32_t bell, int timeoutMs) {
    process.dataSleepers.fetch_add(1);
    futexWait(process.dataBell, bell, timeoutMs);
    process.dataSleepers.fetch_sub(1);
    return process.dataBell.load() != bell;
}

Process& sharedProcess() {
    LocalProcess& process = LocalProcess::instance();
    return process.arena().processes[process.index()];
}

}  // namespace

DataPlane& DataPlane::instance() {
    static std::mutex mutex;
    std::lock_guard guard(mutex);
    if (!g_plane) g_plane = new DataPlane;  // lives until the process ends
    return *g_plane;
}

void DataPlane::forgetAfterFork() {
    g_plane = nullptr;
}

bool DataPlane::isInEffects() {
    return t_effects != 0;
}

bool DataPlane::done(StreamPoint point) const {
    auto it = m_blocked.find(point.stream);
    return it == m_blocked.end() || it->second.empty() || it->second.front().seq > point.seq;
}

void DataPlane::enqueue(StreamPoint at, std::function<bool()> attempt) {
    auto& blocked = m_blocked[at.stream];
    if (!blocked.empty()) pumpIfRung();
    const InEffects inside;
    if (blocked.empty() && attempt()) return;
    blocked.push_back({at.seq, std::move(attempt)});
    startHelper();
}

void DataPlane::enqueueDependency(StreamPoint at, StreamPoint dependency) {
    if (done(dependency) && done({at.stream, at.seq})) return;
    enqueue(at, [this, dependency] { return done(dependency); });
}

bool DataPlane::pump() {
    m_pumpedBell = sharedProcess().dataBell.load();
    const InEffects inside;
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

void DataPlane::pumpIfRung() {
    if (sharedProcess().dataBell.load() != m_pumpedBell) pump();
}

void DataPlane::catchUp() {
    std::lock_guard guard(LocalProcess::instance().mutex());
    pumpIfRung();
}

void DataPlane::waitFor(std::span<const StreamPoint> points) {
    Process& shared = sharedProcess();
    const HostSleep sleep(shared);
    std::unique_lock lock(LocalProcess::instance().mutex());
    if (m_blocked.empty()) return;
    m_waiters++;
    for (;;) {
        pump();
        if (std::ranges::all_of(points, [&](StreamPoint point) { return done(point); })) break;
        const uint32_t bell = m_pumpedBell;
        lock.unlock();
        sleepUntilRung(shared, bell, kWaiterPollMs);
        endIfDeadlocked(LocalProcess::instance().arena());
        lock.lock();
    }
    if (--m_waiters == 0) m_noWaiters.notify_all();
}

bool DataPlane::isThrough(std::span<const StreamPoint> points) const {
    std::lock_guard guard(LocalProcess::instance().mutex());
    return std::ranges::all_of(points, [&](StreamPoint point) { return done(point); });
}

// Peers must get our contributions even while all our threads sleep outside CUDA, so somebody has to go on pumping.
void DataPlane::startHelper() {
    if (m_helperRuns) return;
    m_helperRuns = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the job's own threads
    std::thread([this] { help(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Ends when there was nothing to do for a while: a process whose other threads have left ends with it.
void DataPlane::help() {
    Process& shared = sharedProcess();
    std::unique_lock lock(LocalProcess::instance().mutex());
    int pauseMs = kHelperFirstPollMs;
    for (bool rung = true;;) {
        if (m_waiters)
            m_noWaiters.wait_for(lock, std::chrono::milliseconds(kHelperLastPollMs), [this] { return m_waiters == 0; });
        const bool idle = m_waiters == 0 && pump();
        if (idle && !rung) break;
        const uint32_t bell = m_pumpedBell;
        pauseMs = idle ? kHelperLastPollMs : rung ? kHelperFirstPollMs : std::min(2 * pauseMs, kHelperLastPollMs);
        lock.unlock();
        rung = sleepUntilRung(shared, bell, pauseMs);
        lock.lock();
    }
    m_helperRuns = false;
}

}  // namespace rankscope::vgpu
