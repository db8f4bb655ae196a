// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace rankscope::injector {

/// Stamps in nanoseconds. On a real machine: CLOCK_REALTIME (the time base of CUPTI) by way of the processor's time
/// stamp counter, which costs half of what clock_gettime does. In virtual runs: whatever the given function says. now()
/// is called by any thread; start… and recalibrate() by one thread at a time.
class Clock {
  public:
    /// cuptiGetTimestamp: returns 0 and the time.
    using Function = int (*)(uint64_t* ns);

    constexpr Clock() = default;

    void startRealtime() noexcept;
    void startFunction(Function function) noexcept;

    int64_t now() const noexcept {
        if (m_mode == Mode::counter) return fromTicks(ticks());
        return slowNow();
    }

    /// Follows CLOCK_REALTIME without ever stepping back, unless the clock was set: then it steps and returns true.
    /// To be called several times a second: what it knew of the counter's rate at the start, from 2 ms, may be off by
    /// some parts in a hundred thousand, which is 1 us after 0.1 s.
    bool recalibrate() noexcept;

    bool usesCounter() const noexcept { return m_mode == Mode::counter; }

  private:
    enum class Mode : uint8_t { system, counter, function };

    /// ns = ns0 + (ticks - ticks0) * scale / 2^32
    struct Line {
        std::atomic<uint64_t> ticks0;
        std::atomic<int64_t> ns0;
        std::atomic<uint64_t> scale;
    };
    // Lines are published by index and reused only after kLines seconds, so a reader never waits and never sees one
    // half written.
    static constexpr uint32_t kLines = 64;

    static uint64_t ticks() noexcept;
    int64_t fromTicks(uint64_t ticks) const noexcept {
        const Line& line = m_lines[m_current.load(std::memory_order_acquire)];
        const auto passed = static_cast<int64_t>(ticks - line.ticks0.load(std::memory_order_relaxed));
        const auto scale = static_cast<__int128>(line.scale.load(std::memory_order_relaxed));
        return line.ns0.load(std::memory_order_relaxed) + static_cast<int64_t>((passed * scale) >> 32);
    }
    int64_t slowNow() const noexcept;
    void publish(uint64_t ticks0, int64_t ns0, uint64_t scale) noexcept;

    Mode m_mode = Mode::system;
    Function m_function = nullptr;
    std::atomic<uint32_t> m_current{0};
    Line m_lines[kLines] = {};
    uint64_t m_pairTicks = 0;
    int64_t m_pairNs = 0;
};

inline uint64_t Clock::ticks() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return 0;
#endif
}

}  // namespace rankscope::injector
