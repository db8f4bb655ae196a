// SPDX-License-Identifier: Apache-2.0
// Device and pinned host memory: lazily backed address space, and what is known about a pointer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::vgpu {

enum class MemoryKind : uint8_t { pageable, device, pinned, managed };

struct Allocation {
    void* base;
    size_t bytes;
    MemoryKind kind;
    int device;
};

/// Null when the device's memory is exhausted.
void* allocateMemory(MemoryKind kind, int device, size_t bytes, uint64_t capacityBytes);
/// False if `pointer` is no live allocation's start.
bool freeMemory(void* pointer, Allocation* freed = nullptr);
/// Addresses without memory, and what lies at them later: the driver's virtual memory management (device/mapping.h).
void* reserveAddresses(size_t bytes, size_t alignment);
void returnAddresses(void* base, size_t bytes);
/// Counts memory of a device that has no address yet. False when the device's memory is exhausted.
bool takeDeviceBytes(int device, uint64_t bytes, uint64_t capacityBytes);
void giveBackDeviceBytes(int device, uint64_t bytes);
/// Makes memory already counted known at an address, and forgets it and what is in it.
void placeAllocation(const Allocation& allocation);
void removeAllocation(void* base);

/// Pinned memory the program owns.
bool registerHostMemory(void* pointer, size_t bytes);
bool unregisterHostMemory(void* pointer);
void registerSymbol(const void* hostVariable, size_t bytes);

/// The allocation that holds an address; kind pageable if none does.
Allocation findAllocation(const void* pointer);
uint64_t deviceMemoryUsed(int device);
/// Makes memory read as zero. Whole pages of ours are given back, which costs nothing where they were never touched.
void zeroMemory(void* pointer, size_t bytes);
/// Bytes of a registered __device__ variable, 0 if unknown.
size_t symbolBytes(const void* hostVariable);

}  // namespace rankscope::vgpu
