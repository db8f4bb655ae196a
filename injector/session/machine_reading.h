// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "injector/machine/link_list.h"
#include "injector/record/mutex.h"

namespace rankscope::injector {

/// Asks the machine for its links, on a thread of its own that ends with the answer: NVML may take seconds to begin,
/// and neither the job nor the thread that empties its rings may wait for that. A device is asked once, when the
/// process has a context on it; the host once, with the first device.
class MachineReading {
  public:
    /// Where the answer goes, on that thread.
    using Tell = void (*)(const machine::LinkList& links);

    constexpr MachineReading() = default;

    /// Begins a reading, unless one runs or all is over. Virtual devices have no driver that could tell which of them
    /// the process uses: all are asked.
    void begin(Tell tell, bool isVirtual) noexcept;

    /// Waits for a reading that runs, at most `ns`. One that was waited for in vain is not waited for again.
    void wait(int64_t ns) noexcept;
    /// No more readings; waits for one that runs, at most `ns`.
    void close(int64_t ns) noexcept;

    /// Around a fork, on the forking thread. NVML's locks do not survive in a child, so the fork waits for the reading,
    /// a bounded time.
    void beforeFork() noexcept;
    void afterForkInParent() noexcept { m_gate.unlock(); }
    void afterForkInChild() noexcept;

  private:
    static void* entry(void* self) noexcept;
    void startThread(Tell tell, bool isVirtual) noexcept;
    void read() noexcept;

    Mutex m_gate;  ///< a reading begins, or the process forks
    std::atomic<uint32_t> m_isRunning{0};
    std::atomic<bool> m_isClosed{false};
    std::atomic<bool> m_isStuck{false};
    Tell m_tell = nullptr;
    bool m_isVirtual = false;
    // The reading thread's own.
    uint64_t m_devicesRead = 0;  ///< bit by ordinal
    bool m_isHostRead = false;
};

}  // namespace rankscope::injector
