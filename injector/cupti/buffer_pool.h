// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/record/mutex.h"

namespace rankscope::injector::cupti {

/// Buffers for CUPTI to fill, straight from the kernel and kept for reuse. Thread-safe.
class BufferPool {
  public:
    static constexpr size_t kBufferBytes = 4u << 20;  ///< Kineto's choice: big enough that handing over is rare

    constexpr BufferPool() = default;
    uint8_t* take() noexcept;  ///< null: no memory
    void giveBack(uint8_t* buffer) noexcept;
    void renewLock() noexcept { m_mutex.renew(); }

  private:
    static constexpr size_t kKept = 16;
    Mutex m_mutex;
    uint8_t* m_free[kKept] = {};
    size_t m_count = 0;
};

}  // namespace rankscope::injector::cupti
