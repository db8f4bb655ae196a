// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "injector/capture_format/records.h"
#include "injector/capture_format/ring_layout.h"

namespace rankscope::injector {

/// The producer's and the consumer's view of one ring: one thread pushes, one drains, and neither waits
/// for the other. When it is full the record is dropped and counted in the ring's memory. That may change while the job
/// runs (RingFile::look), at the same address, and the pushing thread waits while it does: what it needs to go on from
/// is therefore here, too. A signal handler may push in the middle of a push of the thread that it interrupts: its
/// record is refused, for the other one is finished only behind it.
class alignas(64) Ring {
  public:
    enum class State : uint32_t { free = 0, owned = 1, ended = 2 };
    /// Of the memory: may be used, is being exchanged, is gone for good.
    enum class Place : uint32_t { here = 0, moving = 1, gone = 2 };

    /// Binds to memory laid out as ring_layout.h says. `cells` is a power of two.
    void bind(capture::RingHeader* header, uint8_t* cells, uint32_t cellCount) noexcept {
        m_header = header;
        m_cells = cells;
        m_mask = cellCount - 1;
    }
    bool isBound() const noexcept { return m_header != nullptr; }
    capture::RingHeader* header() const noexcept { return m_header; }
    uint32_t cellCount() const noexcept { return m_mask + 1; }

    State state() const noexcept {
        return std::atomic_ref(const_cast<State&>(m_state)).load(std::memory_order_acquire);
    }
    void setState(State state) noexcept { std::atomic_ref(m_state).store(state, std::memory_order_release); }

    // --- the owning thread ---

    /// A thread takes the ring over; the consumer has drained it.
    void adopt(uint32_t threadIndex, int32_t tid) noexcept {
        m_header->threadIndex = m_threadIndex = threadIndex;
        m_header->tid = m_tid = tid;
        m_header->lostRecords = m_lost = 0;
        m_head = std::atomic_ref(m_header->head).load(std::memory_order_relaxed);
        m_knownTail = std::atomic_ref(m_header->tail).load(std::memory_order_acquire);
    }

    /// Copies whole cells in and commits them. False: there is no room, or a push of this thread is interrupted.
    bool push(const void* record, uint32_t cells) noexcept {
        // No two pushes of a thread that go on stand at one place of its stack: one that does was left by longjmp.
        // (Not the record's, which would have to be in memory for that.)
        char here;
        const auto who = reinterpret_cast<uintptr_t>(&here);
        uintptr_t before = std::atomic_ref(m_inside).load(std::memory_order_relaxed);
        if (__builtin_expect(before == who, 0)) before = 0;
        if (__builtin_expect(before > kCounting, 0)) return false;
        if (__builtin_expect(!enter(who, before), 0)) return leave(before), true;  // nobody reads it any more
        const bool fits = hasRoom(cells);
        if (__builtin_expect(fits, 1)) {
            const auto* from = static_cast<const uint8_t*>(record);
            for (uint32_t i = 0; i < cells; ++i)
                std::memcpy(m_cells + ((m_head + i) & m_mask) * capture::kCellBytes, from + i * capture::kCellBytes,
                            capture::kCellBytes);
            m_head += cells;
            std::atomic_ref(m_header->head).store(m_head, std::memory_order_release);
        }
        leave(before);
        return fits;
    }

    /// Whether this is a handler that has interrupted a push: room does not come while it waits.
    bool isPushing() noexcept { return std::atomic_ref(m_inside).load(std::memory_order_relaxed) > kCounting; }

    void countLost(int64_t timeNs) noexcept {
        const uintptr_t before = std::atomic_ref(m_inside).load(std::memory_order_relaxed);
        if (enter(kCounting, before)) {
            if (std::atomic_ref(m_lost).fetch_add(1, std::memory_order_relaxed) == 0)
                std::atomic_ref(m_header->lostFirstNs).store(timeNs, std::memory_order_relaxed);
            std::atomic_ref(m_header->lostLastNs).store(timeNs, std::memory_order_relaxed);
            std::atomic_ref(m_header->lostRecords).fetch_add(1, std::memory_order_release);
        }
        leave(before);
    }

    /// True once each time the ring gets half full: then the consumer should be woken.
    bool needsDrain() noexcept {
        if (m_head - m_knownTail <= uint64_t{m_mask} / 2 || m_head < m_wokenUntil) return false;
        const uintptr_t before = std::atomic_ref(m_inside).load(std::memory_order_relaxed);
        const bool isThere = enter(kCounting, before);
        if (isThere) readTail();
        leave(before);
        if (!isThere || m_head - m_knownTail <= uint64_t{m_mask} / 2) return false;
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

    // --- who exchanges the memory: RingFile, in place of the consumer ---

    void setPlace(Place place) noexcept { std::atomic_ref(m_place).store(place, std::memory_order_seq_cst); }
    bool isBeingWritten() noexcept { return std::atomic_ref(m_inside).load(std::memory_order_acquire) != 0; }
    /// A header for memory whose content was lost: the thread goes on from where it is, and nothing is in the ring.
    void beginAgainIn(capture::RingHeader& header) const noexcept {
        header.head = header.tail = header.pendingTail = m_head;
        header.lostRecords = m_lost;
        header.threadIndex = m_threadIndex;
        header.tid = m_tid;
    }

  private:
    /// In m_inside: the thread counts, or reads the header, which a push may interrupt. Larger: where the push stands
    /// on its stack.
    static constexpr uintptr_t kCounting = 1;

    /// While the owning thread is inside, the memory stays. Its first store and its load need no fence between them:
    /// whoever exchanges the memory has the kernel put one there. `before`: what it has interrupted, which keeps the
    /// memory already. False: there is no memory any more.
    bool enter(uintptr_t what, uintptr_t before) noexcept {
        std::atomic_ref inside(m_inside);
        const std::atomic_ref place(m_place);
        for (;;) {
            inside.store(what, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            const Place now = place.load(std::memory_order_acquire);
            if (__builtin_expect(now == Place::here, 1)) return true;
            if (now == Place::gone) return false;
            if (before != 0) return true;
            inside.store(0, std::memory_order_release);
            waitWhileMoving();
        }
    }
    void leave(uintptr_t before) noexcept { std::atomic_ref(m_inside).store(before, std::memory_order_release); }
    /// Inside.
    bool hasRoom(uint32_t cells) noexcept {
        if (__builtin_expect(m_head + cells - m_knownTail <= uint64_t{m_mask} + 1, 1)) return true;
        readTail();
        return m_head + cells - m_knownTail <= uint64_t{m_mask} + 1;
    }
    void readTail() noexcept { m_knownTail = std::atomic_ref(m_header->tail).load(std::memory_order_acquire); }
    void waitWhileMoving() noexcept;

    // One cache line holds what a push needs.
    capture::RingHeader* m_header = nullptr;
    uint8_t* m_cells = nullptr;
    uint64_t m_mask = 0;
    // The owning thread's own copies, so that it touches the consumer's cache line only when the ring seems full.
    uint64_t m_head = 0;
    uint64_t m_knownTail = 0;
    uintptr_t m_inside = 0;  ///< not 0: the owning thread uses the memory
    Place m_place = Place::here;
    State m_state = State::free;
    uint64_t m_wokenUntil = 0;
    uint64_t m_lost = 0;
    uint32_t m_threadIndex = 0;
    int32_t m_tid = 0;
};

}  // namespace rankscope::injector
