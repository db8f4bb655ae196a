// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/record/mutex.h"

namespace rankscope::injector::cupti {

/// Zeroed buffers for CUPTI to fill, straight from the kernel and kept for reuse. Thread-safe. CUPTI asks for them on
/// the job's threads and hands them over on others: there they are zeroed again, which CUPTI would do when it gets them
/// (on an H100 0.4 ms for 4 MiB, 2.5 ms for fresh ones).
class BufferPool {
  public:
    /// The least that CUPTI's manual names. CUPTI 13 fills one for each thread, and the flush every 200 ms takes them
    /// with what is in them: of a training step of 2,000 records that takes 30 ms some 0.7 MB.
    static constexpr size_t kBufferBytes = 1u << 20;

    constexpr BufferPool() = default;
    uint8_t* take() noexcept;  ///< all zero; null: no memory
    void giveBack(uint8_t* buffer) noexcept;
    void renewLock() noexcept { m_mutex.renew(); }

  private:
    static constexpr size_t kKept = 64;
    Mutex m_mutex;
    uint8_t* m_free[kKept] = {};
    size_t m_count = 0;
};

}  // namespace rankscope::injector::cupti
