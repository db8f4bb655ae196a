// SPDX-License-Identifier: Apache-2.0
#include "injector/record/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rankscope::injector {
namespace {

constexpr int64_t kFirstMeasureNs = 2'000'000;
constexpr int64_t kStepNs = 1'000'000;

int64_t systemNow() noexcept {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The counter must run at one rate on all cores and through sleep; the kernel's own choice of clock source says
/// whether it trusts it.
bool counterIsTrusted() noexcept {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) == 0 || (d & (1u << 8)) == 0) return false;
    const int fd = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char text[32] = {};
    const ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    return got > 0 && (std::strncmp(text, "tsc", 3) == 0 || std::strncmp(text, "kvm-clock", 9) == 0);
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/// One moment on both clocks.
struct Pair {
    uint64_t ticks;
    int64_t ns;
};

/// Of a few tries the one with the shortest way between the readings is the least disturbed.
Pair readBoth(uint64_t (*ticks)() noexcept) noexcept {
    Pair best{};
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
        const uint64_t before = ticks();
        const int64_t ns = systemNow();
        const uint64_t passed = ticks() - before;
        if (passed >= shortest) continue;
        shortest = passed;
        best = {before + shortest / 2, ns};
    }
    return best;
}

}  // namespace

void Clock::publish(uint64_t ticks0, int64_t ns0, uint64_t scale) noexcept {
    const uint32_t index = (m_current.load(std::memory_order_relaxed) + 1) % kLines;
    m_lines[index].ticks0.store(ticks0, std::memory_order_relaxed);
    m_lines[index].ns0.store(ns0, std::memory_order_relaxed);
    m_lines[index].scale.store(scale, std::memory_order_relaxed);
    m_current.store(index, std::memory_order_release);
}

void Clock::startRealtime() noexcept {
    m_mode = Mode::system;
    if (!counterIsTrusted()) return;
    const Pair first = readBoth(ticks);
    Pair last = readBoth(ticks);
    while (last.ns - first.ns < kFirstMeasureNs) {
        last = readBoth(ticks);
        if (last.ns < first.ns) return;  // the clock was set back in this very moment: stay with the system's
    }
    const uint64_t passed = last.ticks - first.ticks;
    if (passed == 0) return;
    publish(last.ticks, last.ns,
            static_cast<uint64_t>((static_cast<unsigned __int128>(last.ns - first.ns) << 32) / passed));
    m_pairTicks = last.ticks;
    m_pairNs = last.ns;
    m_mode = Mode::counter;
}

void Clock::startFunction(Function function) noexcept {
    m_function = function;
    m_mode = Mode::function;
}

int64_t Clock::slowNow() const noexcept {
    if (m_mode == Mode::function) {
        uint64_t ns = 0;
        m_function(&ns);
        return static_cast<int64_t>(ns);
    }
    return systemNow();
}

bool Clock::recalibrate() noexcept {
    if (m_mode != Mode::counter) return false;
    const Pair best = readBoth(ticks);
    const uint64_t passedTicks = best.ticks - m_pairTicks;
    const int64_t passedNs = best.ns - m_pairNs;
    const int64_t shown = fromTicks(best.ticks);
    const int64_t error = best.ns - shown;
    const uint64_t oldScale = m_lines[m_current.load(std::memory_order_relaxed)].scale.load(std::memory_order_relaxed);
    const bool stepped = error > kStepNs || error < -kStepNs || passedNs <= 0 || passedTicks == 0;
    m_pairTicks = best.ticks;
    m_pairNs = best.ns;
    if (stepped) {
        publish(best.ticks, best.ns, oldScale);
        return true;
    }
    const auto rate = static_cast<uint64_t>((static_cast<unsigned __int128>(passedNs) << 32) / passedTicks);
    // Run a little faster or slower, so that the error is gone after about as long again as it took to grow; at most by
    // one part in a thousand.
    const int64_t limit = static_cast<int64_t>(rate / 1000);
    int64_t correction = static_cast<int64_t>(static_cast<__int128>(error) * static_cast<int64_t>(rate) / passedNs);
    correction = correction > limit ? limit : correction < -limit ? -limit : correction;
    publish(best.ticks, shown, rate + static_cast<uint64_t>(correction));
    return false;
}

}  // namespace rankscope::injector
