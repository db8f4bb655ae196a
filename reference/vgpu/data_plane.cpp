// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/data_plane.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace rankscope::vgpu {
namespace {

DataPlane* g_plane = nullptr;

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
    std::mutex& mutex = LocalProcess::instance().mutex();
    for (useconds_t pause = 20;; pause = std::min<useconds_t>(pause * 2, 1000)) {
        {
            std::lock_guard guard(mutex);
            if (m_blocked.empty()) return;
            pump();
            if (std::all_of(points.begin(), points.end(), [&](StreamPoint point) { return done(point); })) return;
        }
        usleep(pause);
    }
}

// Peers must get our contributions even while all our threads sleep outside CUDA, so somebody has to go on pumping.
void DataPlane::startHelper() {
    if (m_helperRuns) return;
    m_helperRuns = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);    // signals belong to the job's own threads
    std::thread([this] {
        std::mutex& mutex = LocalProcess::instance().mutex();
        for (;;) {
            usleep(5000);
            std::lock_guard guard(mutex);
            if (pump()) {
                m_helperRuns = false;
                return;
            }
        }
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace rankscope::vgpu
