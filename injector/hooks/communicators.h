// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "injector/capture_format/records.h"
#include "injector/record/mutex.h"

namespace rankscope::injector {

/// Where a communicator's identity across ranks came from; CommunicatorRecord's aux.
enum class HashSource : uint16_t { unknown = 0, nccl = 1, uniqueId = 2 };

struct Communicator {
    uint32_t index = 0;
    uint64_t handle = 0;
    uint64_t hash = 0;
    HashSource hashSource = HashSource::unknown;
    int32_t rank = -1;
    int32_t nRanks = -1;
    int32_t device = -1;
    uint32_t parent = 0;
    int32_t splitColor = -1;
    int32_t splitKey = -1;
    uint32_t splits = 0;  ///< splits made of it so far
    uint32_t thread = 0;  ///< threadIndex of the thread that made it
    bool isComplete() const noexcept { return rank >= 0 && nRanks >= 0 && device >= 0; }
};

/// The living communicators of this process by handle. Looking up takes no lock; adding and removing do.
class Communicators {
  public:
    constexpr Communicators() = default;

    /// Index of a handle, 0 when it is not known.
    uint32_t find(uint64_t handle) const noexcept;
    /// Gives `communicator` its index and keeps it; false when there is no room (4,096 at a time).
    bool add(Communicator& communicator) noexcept;
    bool get(uint64_t handle, Communicator& into) noexcept;
    /// The next communicator of a thread, from slot `from` on, that is not complete; false: no more.
    bool nextIncomplete(uint32_t thread, uint32_t& from, Communicator& into) noexcept;
    void update(const Communicator& communicator) noexcept;
    /// Number of the next split of a communicator: 0, 1… Every member counts the same, because splitting is collective.
    uint32_t nextSplit(uint64_t handle) noexcept;
    /// Returns the index it had, 0 none.
    uint32_t remove(uint64_t handle) noexcept;
    /// Changes whenever a handle may have come to mean something else.
    uint32_t epoch() const noexcept { return m_epoch.load(std::memory_order_acquire); }
    /// In a forked child.
    void clear() noexcept;

  private:
    static constexpr uint32_t kSlots = 4096;
    struct Slot {
        std::atomic<uint64_t> handle{0};
        std::atomic<uint32_t> index{0};
    };
    int32_t slotOf(uint64_t handle) const noexcept;

    Mutex m_mutex;
    std::atomic<uint32_t> m_epoch{1};
    std::atomic<uint32_t> m_used{0};  ///< slots that ever held something
    uint32_t m_nextIndex = 1;
    Slot m_slots[kSlots] = {};
    Communicator m_details[kSlots] = {};
};

}  // namespace rankscope::injector
