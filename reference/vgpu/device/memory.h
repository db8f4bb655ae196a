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
