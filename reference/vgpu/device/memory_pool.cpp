// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

namespace rankscope::vgpu {
namespace {

struct Pools {
    std::mutex mutex;
    std::map<int, MemoryPool*> defaults, current;
    std::map<MemoryPool*, std::unique_ptr<MemoryPool>> all;
    struct Taken {
        MemoryPool* pool;
        uint64_t bytes;
    };
    std::map<const void*, Taken> taken;
};

Pools& pools() {
    static auto* only = new Pools;
    return *only;
}

MemoryPool* add(Pools& known, int device, bool isDefault) {
    auto pool = std::make_unique<MemoryPool>();
    pool->device = device;
    pool->isDefault = isDefault;
    MemoryPool* added = pool.get();
    known.all[added] = std::move(pool);
    return added;
}

MemoryPool* defaultOf(Pools& known, int device) {
    MemoryPool*& pool = known.defaults[device];
    if (!pool) pool = add(known, device, true);
    return pool;
}

template <typename Number>
Number numberAt(const void* from) {
    Number value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <typename Number>
cudaError_t give(void* to, Number value) {
    std::memcpy(to, &value, sizeof value);
    return cudaSuccess;
}

}  // namespace

MemoryPool* defaultPool(int device) {
    std::lock_guard guard(pools().mutex);
    return defaultOf(pools(), device);
}

MemoryPool* currentPool(int device) {
    std::lock_guard guard(pools().mutex);
    const auto found = pools().current.find(device);
    return found == pools().current.end() ? defaultOf(pools(), device) : found->second;
}

void setCurrentPool(int device, MemoryPool* pool) {
    std::lock_guard guard(pools().mutex);
    pools().current[device] = pool;
}

MemoryPool* createPool(int device) {
    std::lock_guard guard(pools().mutex);
    return add(pools(), device, false);
}

bool destroyPool(MemoryPool* pool) {
    std::lock_guard guard(pools().mutex);
    if (!pool || pool->isDefault || !pools().all.contains(pool)) return false;
    std::erase_if(pools().current, [&](const auto& entry) { return entry.second == pool; });
    std::erase_if(pools().taken, [&](const auto& entry) { return entry.second.pool == pool; });
    return pools().all.erase(pool) != 0;
}

MemoryPool* findPool(cudaMemPool_t handle) {
    std::lock_guard guard(pools().mutex);
    auto* pool = reinterpret_cast<MemoryPool*>(handle);
    return pools().all.contains(pool) ? pool : nullptr;
}

cudaMemPool_t handleOf(MemoryPool* pool) {
    return reinterpret_cast<cudaMemPool_t>(pool);
}

void takeFromPool(MemoryPool* pool, const void* pointer, uint64_t bytes) {
    std::lock_guard guard(pools().mutex);
    pools().taken[pointer] = {pool, bytes};
    pool->usedBytes += bytes;
    pool->mostUsedBytes = std::max(pool->mostUsedBytes, pool->usedBytes);
    pool->mostReservedBytes = std::max(pool->mostReservedBytes, pool->usedBytes);
}

void giveBackToPool(const void* pointer) {
    std::lock_guard guard(pools().mutex);
    const auto found = pools().taken.find(pointer);
    if (found == pools().taken.end()) return;
    found->second.pool->usedBytes -= found->second.bytes;
    pools().taken.erase(found);
}

cudaError_t getPoolAttribute(const MemoryPool& pool, cudaMemPoolAttr which, void* value) {
    if (!value) return cudaErrorInvalidValue;
    std::lock_guard guard(pools().mutex);
    switch (which) {
        case cudaMemPoolReuseFollowEventDependencies:
            return give(value, pool.reuseFollowsEvents);
        case cudaMemPoolReuseAllowOpportunistic:
            return give(value, pool.reuseOpportunistic);
        case cudaMemPoolReuseAllowInternalDependencies:
            return give(value, pool.reuseAddsDependencies);
        case cudaMemPoolAttrReleaseThreshold:
            return give(value, pool.releaseThresholdBytes);
        case cudaMemPoolAttrReservedMemCurrent:
        case cudaMemPoolAttrUsedMemCurrent:
            return give(value, pool.usedBytes);
        case cudaMemPoolAttrReservedMemHigh:
            return give(value, pool.mostReservedBytes);
        case cudaMemPoolAttrUsedMemHigh:
            return give(value, pool.mostUsedBytes);
        default:
            return cudaErrorInvalidValue;
    }
}

cudaError_t setPoolAttribute(MemoryPool& pool, cudaMemPoolAttr which, const void* value) {
    if (!value) return cudaErrorInvalidValue;
    std::lock_guard guard(pools().mutex);
    switch (which) {
        case cudaMemPoolReuseFollowEventDependencies:
            pool.reuseFollowsEvents = numberAt<int>(value);
            return cudaSuccess;
        case cudaMemPoolReuseAllowOpportunistic:
            pool.reuseOpportunistic = numberAt<int>(value);
            return cudaSuccess;
        case cudaMemPoolReuseAllowInternalDependencies:
            pool.reuseAddsDependencies = numberAt<int>(value);
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            pool.releaseThresholdBytes = numberAt<uint64_t>(value);
            return cudaSuccess;
        // The high marks can only be reset, by writing zero.
        case cudaMemPoolAttrReservedMemHigh:
            if (numberAt<uint64_t>(value) != 0) return cudaErrorInvalidValue;
            pool.mostReservedBytes = pool.usedBytes;
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
            if (numberAt<uint64_t>(value) != 0) return cudaErrorInvalidValue;
            pool.mostUsedBytes = pool.usedBytes;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
    }
}

}  // namespace rankscope::vgpu
