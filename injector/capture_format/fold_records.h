// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "injector/capture_format/fold.h"
#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Makes of a folded item the records that a recording at full detail would hold of it, as far as it tells: of a call
/// those of the hook, the plugin, its span on the device and its network transfers, joined by numbers of their own. The
/// host's times of a call and its plugin record are its start; a transfer begins with the call on the device.
class FoldRecords {
  public:
    /// The cells of the item's records; valid until the next call.
    const std::vector<uint8_t>& of(const FoldItem& item);

  private:
    template <typename Record>
    void add(Record record, RecordType type, uint16_t aux);
    void addCall(const FoldItem& item);

    std::vector<uint8_t> m_cells;
    // Numbers of recorded events begin at 0 and seldom come here.
    uint32_t m_seq = 0x80000000u;
    uint32_t m_group = 0x80000000u;
    std::map<uint32_t, uint32_t> m_groupOfThread;
};

}  // namespace rankscope::capture
