// SPDX-License-Identifier: Apache-2.0
// Memory without an address and addresses without memory, as the driver's virtual memory management has them. What is
// written lies with the address: memory that is mapped a second time elsewhere is not seen there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rankscope::vgpu {

/// What cuMemGetAllocationGranularity tells, minimum and recommended: a large page.
inline constexpr size_t kMappingGranule = size_t{2} << 20;

struct PhysicalMemory {
    int device;
    size_t bytes;
    uint32_t holders;  ///< handles given out and places where it is mapped
};

/// 0 when the device's memory is exhausted.
uint64_t createPhysical(int device, size_t bytes, uint64_t capacityBytes);
bool releasePhysical(uint64_t handle);
std::optional<PhysicalMemory> findPhysical(uint64_t handle);

/// Null when no addresses are left.
void* reserveRange(size_t bytes, size_t alignment);
bool freeRange(void* base, size_t bytes);

/// False if the addresses are not reserved, something is mapped there, or the sizes do not fit.
bool mapPhysical(void* address, size_t bytes, uint64_t handle);
/// Takes whole mappings away. False if they do not fill the range exactly.
bool unmapPhysical(void* address, size_t bytes);
/// True if mappings fill the range.
bool isMapped(const void* address, size_t bytes);
/// The memory at an address, with one more holder; 0 if there is none.
uint64_t retainPhysicalAt(const void* address);

}  // namespace rankscope::vgpu
