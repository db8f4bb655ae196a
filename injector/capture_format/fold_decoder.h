// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "injector/capture_format/fold.h"
#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Takes FoldRecords apart again, in the order of the file. Whatever the bytes are, next() ends.
class FoldDecoder {
  public:
    /// The items of one record, `bytes` bytes behind `head`; they must stay until the last next(). False: it builds on
    /// a record that is missing or was damaged, and nothing of it can be told.
    bool begin(const FoldRecord& head, const uint8_t* bytes);

    /// Nothing behind the last item, or when the bytes contradict themselves: then isDamaged().
    std::optional<FoldItem> next();
    bool isDamaged() const { return m_damaged; }

  private:
    bool take(uint64_t& value);
    bool takeKey(FoldKey& key);
    std::optional<FoldItem> fail();

    std::unique_ptr<FoldModel> m_model;
    const uint8_t* m_at = nullptr;
    const uint8_t* m_end = nullptr;
    uint32_t m_left = 0;
    uint32_t m_nextSequence = 0;
    bool m_damaged = false;
    bool m_follows = false;  // the model is that of the record before the next one
};

}  // namespace rankscope::capture
