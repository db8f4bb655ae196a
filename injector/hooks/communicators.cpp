// SPDX-License-Identifier: Apache-2.0
#include "injector/hooks/communicators.h"

namespace rankscope::injector {

// Jobs have a handful of communicators, so a scan over the used slots is short; threads remember their last one
// besides.
int32_t Communicators::slotOf(uint64_t handle) const noexcept {
    const uint32_t used = m_used.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < used; ++i)
        if (m_slots[i].handle.load(std::memory_order_acquire) == handle) return static_cast<int32_t>(i);
    return -1;
}

uint32_t Communicators::find(uint64_t handle) const noexcept {
    if (handle == 0) return 0;
    const int32_t slot = slotOf(handle);
    return slot < 0 ? 0 : m_slots[slot].index.load(std::memory_order_relaxed);
}

bool Communicators::add(Communicator& communicator) noexcept {
    Lock lock(m_mutex);
    communicator.index = m_nextIndex++;
    int32_t slot = slotOf(communicator.handle);  // the same address again: the old one ended unseen
    if (slot < 0) slot = slotOf(0);
    if (slot < 0) {
        const uint32_t used = m_used.load(std::memory_order_relaxed);
        if (used == kSlots) return false;
        slot = static_cast<int32_t>(used);
        m_used.store(used + 1, std::memory_order_release);
    }
    m_details[slot] = communicator;
    m_slots[slot].index.store(communicator.index, std::memory_order_relaxed);
    m_slots[slot].handle.store(communicator.handle, std::memory_order_release);
    m_epoch.fetch_add(1, std::memory_order_release);
    return true;
}

bool Communicators::get(uint64_t handle, Communicator& into) noexcept {
    Lock lock(m_mutex);
    const int32_t slot = handle == 0 ? -1 : slotOf(handle);
    if (slot < 0) return false;
    into = m_details[slot];
    return true;
}

bool Communicators::nextIncomplete(uint32_t thread, uint32_t& from, Communicator& into) noexcept {
    Lock lock(m_mutex);
    const uint32_t used = m_used.load(std::memory_order_relaxed);
    while (from < used) {
        const uint32_t slot = from++;
        if (m_slots[slot].handle.load(std::memory_order_relaxed) == 0) continue;
        if (m_details[slot].thread != thread || m_details[slot].isComplete()) continue;
        into = m_details[slot];
        return true;
    }
    return false;
}

void Communicators::update(const Communicator& communicator) noexcept {
    Lock lock(m_mutex);
    const int32_t slot = slotOf(communicator.handle);
    if (slot >= 0) m_details[slot] = communicator;
}

uint32_t Communicators::nextSplit(uint64_t handle) noexcept {
    Lock lock(m_mutex);
    const int32_t slot = handle == 0 ? -1 : slotOf(handle);
    return slot < 0 ? 0 : m_details[slot].splits++;
}

uint32_t Communicators::remove(uint64_t handle) noexcept {
    Lock lock(m_mutex);
    const int32_t slot = handle == 0 ? -1 : slotOf(handle);
    if (slot < 0) return 0;
    const uint32_t index = m_details[slot].index;
    m_slots[slot].index.store(0, std::memory_order_relaxed);
    m_slots[slot].handle.store(0, std::memory_order_release);
    m_epoch.fetch_add(1, std::memory_order_release);
    return index;
}

void Communicators::clear() noexcept {
    m_mutex.renew();
    m_used.store(0, std::memory_order_relaxed);
    m_nextIndex = 1;
    for (Slot& slot : m_slots) {
        slot.handle.store(0, std::memory_order_relaxed);
        slot.index.store(0, std::memory_order_relaxed);
    }
    m_epoch.fetch_add(1, std::memory_order_release);
}

}  // namespace rankscope::injector
