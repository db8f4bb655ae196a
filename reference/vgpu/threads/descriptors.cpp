// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/descriptors.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "reference/vgpu/device/stall_watch.h"
#include "reference/vgpu/device/wait_keys.h"
#include "reference/vgpu/threads/standstill.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

// Whoever sleeps in the system is not woken by the virtual clock, so it looks at it so often.
constexpr int64_t kStretchMs = 50;

/// An eventfd has no kind of file; all of them share one inode, so they are told apart by their number.
uint64_t keyOf(int descriptor, bool& isSocket) {
    struct stat status;
    isSocket = false;
    if (fstat(descriptor, &status) != 0) return 0;
    if (S_ISFIFO(status.st_mode)) return inodeKey(status);
    isSocket = S_ISSOCK(status.st_mode);
    if (isSocket) return inodeKey(status);
    if ((status.st_mode & S_IFMT) == 0)
        return mixKeys(LocalProcess::instance().index() + 1, static_cast<uint64_t>(descriptor)) | kCounterBit;
    return 0;
}

}  // namespace

BlockedOutside::BlockedOutside(const char* call, std::span<const uint64_t> keys, int64_t timeoutNs)
    : m_clock(anyClock()), m_deadlineNs(m_clock && timeoutNs >= 0 ? m_clock->ns + timeoutNs : kForever) {
    if (m_clock) LocalProcess::instance().parkOutside(*m_clock, call, m_deadlineNs, keys);
}

BlockedOutside::~BlockedOutside() {
    if (!m_clock) return;
    if (m_looksOn)
        LocalProcess::instance().observe(*m_clock);
    else
        LocalProcess::instance().unpark(*m_clock, kNoClock);
    LocalProcess::instance().forgetEnded(true);
}

int BlockedOutside::stretchMs(int64_t wantedMs) {
    return static_cast<int>(wantedMs < 0 ? kStretchMs : std::min<int64_t>(wantedMs, kStretchMs));
}

bool BlockedOutside::wasToldInVain(std::span<const uint64_t> keys) const {
    if (!m_clock || m_clock->shared->state.load(std::memory_order_acquire) == ThreadState::parked) return false;
    return std::all_of(keys.begin(), keys.end(),
                       [](uint64_t key) { return LocalProcess::instance().whenReadable(key) == kNoClock; });
}

bool BlockedOutside::isOver(bool isRealTimeUp) {
    if (m_deadlineNs == kForever) return false;
    HostThread& shared = *m_clock->shared;
    LocalProcess& process = LocalProcess::instance();
    if (shared.timedOut.load(std::memory_order_acquire)) return true;
    if (!isRealTimeUp || !Standstill::ofThisThread().lasts()) return false;
    if (!shared.hasActed) return m_looksOn = true;
    static const std::atomic<uint32_t> nobodyWakes{0};
    process.reachDeadline(*m_clock, m_deadlineNs, nobodyWakes);
    return shared.boundNs.load() >= m_deadlineNs;
}

bool BlockedOutside::isTold(int64_t ms) {
    HostThread& shared = *m_clock->shared;
    const uint32_t before = shared.futex.load(std::memory_order_acquire);
    if (shared.state.load(std::memory_order_acquire) != ThreadState::parked) return true;
    LocalProcess& process = LocalProcess::instance();
    StallWatch watch(process.arena(), process.index());
    futexWait(shared.futex, before, static_cast<int>(ms));
    if (shared.state.load(std::memory_order_acquire) != ThreadState::parked) return true;
    watch.lookWhileBlocked(static_cast<int>(ms));
    return false;
}

uint64_t keyOfBytes(std::span<const char> bytes) {
    uint64_t hash = 1469598103934665603ull;  // FNV-1a
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
    return mixKeys(hash, bytes.size());
}

uint64_t socketKey(int descriptor) {
    bool isSocket;
    const uint64_t key = keyOf(descriptor, isSocket);
    return isSocket ? key : 0;
}

uint64_t readKey(int descriptor) {
    bool isSocket;
    const uint64_t key = keyOf(descriptor, isSocket);
    return isSocket ? LocalProcess::instance().channelsOf(key).reads : key;
}

uint64_t writeKey(int descriptor) {
    bool isSocket;
    const uint64_t key = keyOf(descriptor, isSocket);
    return isSocket ? LocalProcess::instance().channelsOf(key).writes : key;
}

void wrote(int descriptor, uint64_t bytes) {
    ThreadClock* clock = activeClock();
    if (!clock && !anyClock()) return;
    const uint64_t key = writeKey(descriptor);
    if (key == 0) return;
    LocalProcess& process = LocalProcess::instance();
    if (clock) process.takeTurnInFamily(*clock);
    process.tellWritten(key, bytes, clockNs(clock));
}

void hasRead(int descriptor, int64_t result) {
    ThreadClock* clock = result > 0 ? activeClock() : nullptr;
    if (!clock) return;
    const uint64_t key = readKey(descriptor);
    if (key == 0) return;
    LocalProcess& process = LocalProcess::instance();
    process.goOnAt(*clock, process.whenWritten(key, key & kCounterBit ? kAllBytes : static_cast<uint64_t>(result)));
}

void sawEnd(uint64_t key) {
    ThreadClock* clock = key ? activeClock() : nullptr;
    if (!clock) return;
    LocalProcess& process = LocalProcess::instance();
    process.goOnAt(*clock, process.whenEnded(key));
}

void sawReady(std::span<const int> descriptors) {
    ThreadClock* clock = activeClock();
    if (!clock || descriptors.empty()) return;
    LocalProcess& process = LocalProcess::instance();
    int64_t readyNs = kForever;  // of the first one
    for (const int descriptor : descriptors) {
        const uint64_t key = readKey(descriptor);
        readyNs = std::min(readyNs, key ? process.whenReadable(key) : kNoClock);
    }
    // One that looks again and again until another thread has read must not stand still for that one.
    constexpr int64_t kLookNs = 100;
    thread_local int64_t lastLookNs = kNoClock;
    if (clock->ns == lastLookNs) clock->ns += kLookNs;
    lastLookNs = std::max(clock->ns, readyNs);
    process.goOnAt(*clock, lastLookNs);
}

}  // namespace rankscope::vgpu::threads
