// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/buffer_pool.h"

#include <sys/mman.h>

#include <cstring>

namespace rankscope::injector::cupti {

uint8_t* BufferPool::take() noexcept {
    {
        Lock lock(m_mutex);
        if (m_count > 0) return m_free[--m_count];
    }
    void* memory = ::mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

void BufferPool::giveBack(uint8_t* buffer) noexcept {
    std::memset(buffer, 0, kBufferBytes);
    {
        Lock lock(m_mutex);
        if (m_count < kKept) {
            m_free[m_count++] = buffer;
            return;
        }
    }
    ::munmap(buffer, kBufferBytes);
}

}  // namespace rankscope::injector::cupti
