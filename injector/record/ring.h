// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "injector/capture_format/records.h"
#include "injector/capture_format/ring_layout.h"

namespace rankscope::injector {

/// The producer's and the consumer's view of one ring in the file mapping: one thread pushes, one drains, nobody waits.
/// When it is full the record is dropped and counted in the mapping.
class Ring {
  public:
    /// Binds to memory laid out as ring_layout.h says. `cells` is a power of two.
    void bind(capture::RingHeader* header, uint8_t* cells, uint32_t cellCount) noexcept {
        m_header = header;
        m_cells = cells;
        m_mask = cellCount - 1;
    }
    bool isBound() const noexcept { return m_header != nullptr; }
    capture::RingHeader* header() const noexcept { return m_header; }
    uint32_t cellCount() const noexcept { return m_mask + 1; }

    // --- the owning thread ---

    /// A thread takes the ring over; the consumer has drained it.
    void adopt(uint32_t threadIndex, int32_t tid) noexcept {
        m_header->threadIndex = threadIndex;
        m_header->tid = tid;
        m_header->lostRecords = 0;
        m_head = std::atomic_ref(m_header->head).load(std::memory_order_relaxed);
        m_knownTail = std::atomic_ref(m_header->tail).load(std::memory_order_acquire);
    }

    bool hasRoom(uint32_t cells) noexcept {
        if (m_head + cells - m_knownTail <= uint64_t{m_mask} + 1) return true;
        m_knownTail = std::atomic_ref(m_header->tail).load(std::memory_order_acquire);
        return m_head + cells - m_knownTail <= uint64_t{m_mask} + 1;
    }

    /// Copies whole cells in and commits them. The caller has seen hasRoom().
    void push(const void* record, uint32_t cells) noexcept {
        const auto* from = static_cast<const uint8_t*>(record);
        for (uint32_t i = 0; i < cells; ++i)
            std::memcpy(m_cells + ((m_head + i) & m_mask) * capture::kCellBytes, from + i * capture::kCellBytes,
                        capture::kCellBytes);
        m_head += cells;
        std::atomic_ref(m_header->head).store(m_head, std::memory_order_release);
    }

    void countLost(int64_t timeNs) noexcept {
        std::atomic_ref lost(m_header->lostRecords);
        if (lost.load(std::memory_order_relaxed) == 0)
            std::atomic_ref(m_header->lostFirstNs).store(timeNs, std::memory_order_relaxed);
        std::atomic_ref(m_header->lostLastNs).store(timeNs, std::memory_order_relaxed);
        lost.store(lost.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    /// True once each time the ring gets half full: then the consumer should be woken.
    bool needsDrain() noexcept {
        if (m_head - m_knownTail <= uint64_t{m_mask} / 2 || m_head < m_wokenUntil) return false;
        m_knownTail = std::atomic_ref(m_header->tail).load(std::memory_order_acquire);
        if (m_head - m_knownTail <= uint64_t{m_mask} / 2) return false;
        m_wokenUntil = m_head + m_mask / 8;  // once is enough, unless it does not help
        return true;
    }

    // --- the consumer ---

    uint64_t committedHead() const noexcept { return std::atomic_ref(m_header->head).load(std::memory_order_acquire); }
    uint64_t tail() const noexcept { return m_header->tail; }
    const uint8_t* cellAt(uint64_t position) const noexcept {
        return m_cells + (position & m_mask) * capture::kCellBytes;
    }
    /// Cells from `position` to the end of the ring's memory.
    uint64_t untilWrap(uint64_t position) const noexcept { return uint64_t{m_mask} + 1 - (position & m_mask); }
    void announce(uint64_t newTail, uint32_t sequence) noexcept {
        m_header->pendingSequence = sequence;
        std::atomic_ref(m_header->pendingTail).store(newTail, std::memory_order_release);
    }
    void release(uint64_t newTail) noexcept {
        std::atomic_ref(m_header->tail).store(newTail, std::memory_order_release);
    }
    uint64_t lostRecords() const noexcept {
        return std::atomic_ref(m_header->lostRecords).load(std::memory_order_acquire);
    }

  private:
    capture::RingHeader* m_header = nullptr;
    uint8_t* m_cells = nullptr;
    uint64_t m_mask = 0;
    // The owning thread's own copies, so that it touches the consumer's cache line only when the ring seems full.
    uint64_t m_head = 0;
    uint64_t m_knownTail = 0;
    uint64_t m_wokenUntil = 0;
};

}  // namespace rankscope::injector
