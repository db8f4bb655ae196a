// SPDX-License-Identifier: Apache-2.0
#include "injector/record/permanent_memory.h"

#include <sys/mman.h>

#include <cstdint>

#include "injector/record/mutex.h"

namespace rankscope::injector {
namespace {

constexpr size_t kChunk = 256u << 10;
constinit Mutex g_mutex;
uint8_t* g_chunk = nullptr;
size_t g_left = 0;

uint8_t* map(size_t bytes) noexcept {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

}  // namespace

void* takePermanent(size_t bytes) noexcept {
    bytes = (bytes + 15) & ~size_t{15};
    if (bytes > kChunk / 4) return map(bytes);
    Lock lock(g_mutex);
    if (bytes > g_left) {
        g_chunk = map(kChunk);
        g_left = g_chunk == nullptr ? 0 : kChunk;
        if (g_left == 0) return nullptr;
    }
    void* memory = g_chunk;
    g_chunk += bytes;
    g_left -= bytes;
    return memory;
}

void renewPermanentMemoryLock() noexcept {
    g_mutex.renew();
}

}  // namespace rankscope::injector
