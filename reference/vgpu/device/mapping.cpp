// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/mapping.h"

#include <map>
#include <mutex>

#include "reference/vgpu/device/memory.h"

namespace rankscope::vgpu {
namespace {

struct Mapping {
    size_t bytes;
    uint64_t handle;
};

struct Mappings {
    std::mutex mutex;
    std::map<uint64_t, PhysicalMemory> memory;
    std::map<uintptr_t, size_t> ranges;
    std::map<uintptr_t, Mapping> mapped;
    uint64_t nextHandle = 0x700000;
};

Mappings& mappings() {
    static auto* only = new Mappings;
    return *only;
}

uintptr_t number(const void* address) {
    return reinterpret_cast<uintptr_t>(address);
}

bool drop(Mappings& all, uint64_t handle) {
    const auto it = all.memory.find(handle);
    if (it == all.memory.end()) return false;
    if (--it->second.holders > 0) return true;
    giveBackDeviceBytes(it->second.device, it->second.bytes);
    all.memory.erase(it);
    return true;
}

bool isReserved(const Mappings& all, uintptr_t address, size_t bytes) {
    auto it = all.ranges.upper_bound(address);
    if (it == all.ranges.begin()) return false;
    --it;
    return address + bytes <= it->first + it->second;
}

/// The mapping that holds an address.
std::map<uintptr_t, Mapping>::iterator mappingAt(Mappings& all, uintptr_t address) {
    auto it = all.mapped.upper_bound(address);
    if (it == all.mapped.begin()) return all.mapped.end();
    --it;
    return address < it->first + it->second.bytes ? it : all.mapped.end();
}

bool isFilled(Mappings& all, uintptr_t address, size_t bytes) {
    const uintptr_t end = address + bytes;
    while (address < end) {
        const auto it = mappingAt(all, address);
        if (it == all.mapped.end()) return false;
        address = it->first + it->second.bytes;
    }
    return true;
}

}  // namespace

uint64_t createPhysical(int device, size_t bytes, uint64_t capacityBytes) {
    if (!takeDeviceBytes(device, bytes, capacityBytes)) return 0;
    std::lock_guard guard(mappings().mutex);
    const uint64_t handle = mappings().nextHandle += 0x100;
    mappings().memory[handle] = {device, bytes, 1};
    return handle;
}

bool releasePhysical(uint64_t handle) {
    std::lock_guard guard(mappings().mutex);
    return drop(mappings(), handle);
}

std::optional<PhysicalMemory> findPhysical(uint64_t handle) {
    std::lock_guard guard(mappings().mutex);
    const auto it = mappings().memory.find(handle);
    if (it == mappings().memory.end()) return std::nullopt;
    return it->second;
}

void* reserveRange(size_t bytes, size_t alignment) {
    void* base = reserveAddresses(bytes, alignment);
    if (!base) return nullptr;
    std::lock_guard guard(mappings().mutex);
    mappings().ranges[number(base)] = bytes;
    return base;
}

bool freeRange(void* base, size_t bytes) {
    std::lock_guard guard(mappings().mutex);
    const auto it = mappings().ranges.find(number(base));
    if (it == mappings().ranges.end() || it->second != bytes) return false;
    const auto mapping = mappings().mapped.lower_bound(number(base));
    if (mapping != mappings().mapped.end() && mapping->first < number(base) + bytes) return false;
    mappings().ranges.erase(it);
    returnAddresses(base, bytes);
    return true;
}

bool mapPhysical(void* address, size_t bytes, uint64_t handle) {
    Mappings& all = mappings();
    std::lock_guard guard(all.mutex);
    const auto memory = all.memory.find(handle);
    if (memory == all.memory.end() || bytes == 0 || bytes != memory->second.bytes) return false;
    if (!isReserved(all, number(address), bytes)) return false;
    const auto next = all.mapped.lower_bound(number(address));
    if (mappingAt(all, number(address)) != all.mapped.end()) return false;
    if (next != all.mapped.end() && next->first < number(address) + bytes) return false;
    memory->second.holders++;
    all.mapped[number(address)] = {bytes, handle};
    placeAllocation({address, bytes, MemoryKind::device, memory->second.device});
    return true;
}

bool unmapPhysical(void* address, size_t bytes) {
    Mappings& all = mappings();
    std::lock_guard guard(all.mutex);
    const uintptr_t begin = number(address), end = begin + bytes;
    if (bytes == 0 || !all.mapped.contains(begin) || !isFilled(all, begin, bytes)) return false;
    const auto last = mappingAt(all, end - 1);
    if (last->first + last->second.bytes != end) return false;
    for (auto it = all.mapped.find(begin); it != all.mapped.end() && it->first < end; it = all.mapped.erase(it)) {
        removeAllocation(reinterpret_cast<void*>(it->first));
        drop(all, it->second.handle);
    }
    return true;
}

bool isMapped(const void* address, size_t bytes) {
    std::lock_guard guard(mappings().mutex);
    return bytes > 0 && isFilled(mappings(), number(address), bytes);
}

uint64_t retainPhysicalAt(const void* address) {
    Mappings& all = mappings();
    std::lock_guard guard(all.mutex);
    const auto it = mappingAt(all, number(address));
    if (it == all.mapped.end()) return 0;
    all.memory[it->second.handle].holders++;
    return it->second.handle;
}

}  // namespace rankscope::vgpu
