// SPDX-License-Identifier: Apache-2.0
// Pools that memory is taken from in the order of a stream. They keep nothing back: what is freed is the device's
// again, so that no release threshold has anything to hold.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace rankscope::vgpu {

struct MemoryPool {
    int device = 0;
    bool isDefault = false;
    int reuseFollowsEvents = 1, reuseOpportunistic = 1, reuseAddsDependencies = 1;
    uint64_t releaseThresholdBytes = 0;
    uint64_t usedBytes = 0, mostUsedBytes = 0, mostReservedBytes = 0;
};

/// The pool that a device begins with, and the one it takes memory from now. Valid until the process ends, or the pool
/// is destroyed.
MemoryPool* defaultPool(int device);
MemoryPool* currentPool(int device);
void setCurrentPool(int device, MemoryPool* pool);

MemoryPool* createPool(int device);
/// False for one that is unknown or a device's own. Devices that took memory from it go back to their own.
bool destroyPool(MemoryPool* pool);
/// Null if the handle is unknown.
MemoryPool* findPool(cudaMemPool_t handle);
cudaMemPool_t handleOf(MemoryPool* pool);

/// What an allocation was taken from, until it is given back.
void takeFromPool(MemoryPool* pool, const void* pointer, uint64_t bytes);
void giveBackToPool(const void* pointer);

cudaError_t getPoolAttribute(const MemoryPool& pool, cudaMemPoolAttr which, void* value);
cudaError_t setPoolAttribute(MemoryPool& pool, cudaMemPoolAttr which, const void* value);

}  // namespace rankscope::vgpu
