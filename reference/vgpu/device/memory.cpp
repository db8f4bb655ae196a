// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace rankscope::vgpu {
namespace {

// Every process gets the same addresses: pointers show up in traces.
constexpr uintptr_t kFirstAddress = 0x200000000000;
constexpr size_t kReservedBytes = size_t{2} << 40;
constexpr size_t kGranule = 512;  // what cudaMalloc aligns to
constexpr size_t kPage = 4096;

struct Space {
    std::mutex mutex;
    std::map<uintptr_t, Allocation> live;
    std::multimap<size_t, uintptr_t>
        freeBlocks;  // by size; sizes are rounded, so that equal requests reuse equal blocks
    std::map<uintptr_t, size_t> blockBytes;
    std::map<int, uint64_t> used;
    std::map<uintptr_t, size_t> symbols;
    uintptr_t next = 0, end = 0;
};

Space& space() {
    static auto* only = new Space;
    return *only;
}

struct PageRange {
    uintptr_t first, last;
};
PageRange pagesWithin(uintptr_t address, size_t bytes) {
    return {(address + kPage - 1) / kPage * kPage, (address + bytes) / kPage * kPage};
}

bool openSpace(Space& memory) {
    if (memory.next == 0) {
        void* base = mmap(reinterpret_cast<void*>(kFirstAddress), kReservedBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) return false;
        madvise(base, kReservedBytes, MADV_NOHUGEPAGE);  // a touched window must not cost 2 MiB
        madvise(base, kReservedBytes, MADV_DONTDUMP);
        memory.next = reinterpret_cast<uintptr_t>(base);
        memory.end = memory.next + kReservedBytes;
    }
    return true;
}

uintptr_t takeBlock(Space& memory, size_t bytes) {
    if (!openSpace(memory)) return 0;
    if (auto it = memory.freeBlocks.find(bytes); it != memory.freeBlocks.end()) {
        uintptr_t address = it->second;
        memory.freeBlocks.erase(it);
        return address;
    }
    if (memory.next + bytes > memory.end) return 0;
    uintptr_t address = memory.next;
    memory.next += bytes;
    memory.blockBytes[address] = bytes;
    return address;
}

}  // namespace

void* allocateMemory(MemoryKind kind, int device, size_t bytes, uint64_t capacityBytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    bool counts = kind != MemoryKind::pinned;
    if (counts && memory.used[device] + bytes > capacityBytes) return nullptr;
    size_t granule = bytes >= kPage ? kPage : kGranule;
    size_t rounded = (std::max<size_t>(bytes, 1) + granule - 1) / granule * granule;
    uintptr_t address = takeBlock(memory, rounded);
    if (!address) return nullptr;
    if (counts) memory.used[device] += bytes;
    memory.live[address] = {reinterpret_cast<void*>(address), bytes, kind, device};
    return reinterpret_cast<void*>(address);
}

bool freeMemory(void* pointer, Allocation* freed) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    auto it = memory.live.find(reinterpret_cast<uintptr_t>(pointer));
    if (it == memory.live.end()) return false;
    if (freed) *freed = it->second;
    if (it->second.kind != MemoryKind::pinned) memory.used[it->second.device] -= it->second.bytes;
    memory.live.erase(it);
    auto block = memory.blockBytes.find(reinterpret_cast<uintptr_t>(pointer));
    if (block == memory.blockBytes.end()) return true;  // registered by the program, not ours
    const PageRange pages = pagesWithin(block->first, block->second);
    if (pages.last > pages.first)
        madvise(reinterpret_cast<void*>(pages.first), pages.last - pages.first, MADV_DONTNEED);
    memory.freeBlocks.emplace(block->second, block->first);
    return true;
}

void* reserveAddresses(size_t bytes, size_t alignment) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    if (!openSpace(memory)) return nullptr;
    const uintptr_t address = (memory.next + alignment - 1) / alignment * alignment;
    if (address + bytes > memory.end || address + bytes < address) return nullptr;
    memory.next = address + bytes;
    return reinterpret_cast<void*>(address);
}

void returnAddresses(void* base, size_t bytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    const auto address = reinterpret_cast<uintptr_t>(base);
    if (address + bytes == memory.next) memory.next = address;  // else they stay unused: there are 2 TiB
}

bool takeDeviceBytes(int device, uint64_t bytes, uint64_t capacityBytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    if (memory.used[device] + bytes > capacityBytes) return false;
    memory.used[device] += bytes;
    return true;
}

void giveBackDeviceBytes(int device, uint64_t bytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    memory.used[device] -= bytes;
}

void placeAllocation(const Allocation& allocation) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    memory.live[reinterpret_cast<uintptr_t>(allocation.base)] = allocation;
}

void removeAllocation(void* base) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    const auto it = memory.live.find(reinterpret_cast<uintptr_t>(base));
    if (it == memory.live.end()) return;
    madvise(base, it->second.bytes, MADV_DONTNEED);
    memory.live.erase(it);
}

bool registerHostMemory(void* pointer, size_t bytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    return memory.live
        .try_emplace(reinterpret_cast<uintptr_t>(pointer), Allocation{pointer, bytes, MemoryKind::pinned, 0})
        .second;
}

bool unregisterHostMemory(void* pointer) {
    return freeMemory(pointer);
}

void registerSymbol(const void* hostVariable, size_t bytes) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    memory.symbols[reinterpret_cast<uintptr_t>(hostVariable)] = bytes;
}

void zeroMemory(void* pointer, size_t bytes) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    Space& memory = space();
    bool isOurs = false;
    {
        std::lock_guard guard(memory.mutex);
        isOurs = memory.next != 0 && address >= memory.end - kReservedBytes && address + bytes <= memory.end;
    }
    const PageRange pages = pagesWithin(address, bytes);
    // Below that a system call costs more than writing.
    constexpr size_t kWorthACall = 4 * kPage;
    if (!isOurs || pages.last < pages.first + kWorthACall) {
        std::memset(pointer, 0, bytes);
        return;
    }
    std::memset(pointer, 0, pages.first - address);
    madvise(reinterpret_cast<void*>(pages.first), pages.last - pages.first, MADV_DONTNEED);
    std::memset(reinterpret_cast<void*>(pages.last), 0, address + bytes - pages.last);
}

size_t symbolBytes(const void* hostVariable) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    auto it = memory.symbols.find(reinterpret_cast<uintptr_t>(hostVariable));
    return it == memory.symbols.end() ? 0 : it->second;
}

Allocation findAllocation(const void* pointer) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    auto address = reinterpret_cast<uintptr_t>(pointer);
    auto it = memory.live.upper_bound(address);
    if (it != memory.live.begin()) {
        --it;
        if (address < it->first + std::max<size_t>(it->second.bytes, 1)) return it->second;
    }
    return {nullptr, 0, MemoryKind::pageable, -1};
}

uint64_t deviceMemoryUsed(int device) {
    Space& memory = space();
    std::lock_guard guard(memory.mutex);
    return memory.used[device];
}

}  // namespace rankscope::vgpu
