// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/fold.h"
#include "injector/capture_format/record_traits.h"

namespace rankscope::capture {

/// Makes FoldRecords of items. All zero at first. Lives in static memory; one thread at a time. Never allocates.
class FoldEncoder {
  public:
    constexpr FoldEncoder() = default;
    FoldEncoder(const FoldEncoder&) = delete;
    FoldEncoder& operator=(const FoldEncoder&) = delete;

    /// False: the record at hand has no room for one more; take it and call again.
    bool add(const FoldItem& item) noexcept;

    /// The record so far, with whole cells; null when it holds nothing. Valid until finish().
    const void* record() noexcept;
    size_t recordBytes() const noexcept;
    /// Of the items in it.
    size_t itemBytes() const noexcept { return m_used; }
    /// The record was taken: the next one begins.
    void finish() noexcept;

    /// Begins anew, in a file of its own.
    void clear() noexcept;

  private:
    static constexpr size_t kPlaces = 2048;  // twice the keys
    static constexpr size_t kMostItemBytes = 10 * (kFoldKeyWords + FoldModel::kFields + 1);
    static constexpr size_t kRecordBytes = kMaxRecordCells * kCellBytes;
    /// A damaged record spoils those that build on it: the model starts anew after so many, about 256 kB.
    static constexpr uint32_t kRecordsPerStart = 32;

    uint32_t numberOf(const FoldKey& key) noexcept;
    void put(uint64_t value) noexcept;

    FoldModel m_model;
    uint16_t m_numbers[kPlaces] = {};  // by hash of the key
    FoldRecord m_head{};
    uint32_t m_sinceStart = 0;
    bool m_builds = false;  // on the record before
    size_t m_used = 0;      // behind the head
    alignas(8) uint8_t m_bytes[kRecordBytes] = {};
};

}  // namespace rankscope::capture
