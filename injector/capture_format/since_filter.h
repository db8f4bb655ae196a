// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "injector/capture_format/fold.h"
#include "injector/capture_format/record_view.h"

namespace rankscope::capture {

/// What began at `sinceNs` or later is told by .detail files and rings, what began before by FoldRecords, each once.
/// The end of a range is told by where it lies, too.
class SinceFilter {
  public:
    explicit SinceFilter(int64_t sinceNs) : m_sinceNs(sinceNs) {}

    /// All of the file's, in their order, and then the others.
    bool keeps(const FoldItem& item);
    bool keeps(const RecordView& detail);

  private:
    bool keepsMark(const RecordView& view);
    bool isOpenInFold(uint32_t thread, int64_t startNs) const;

    int64_t m_sinceNs;
    std::map<uint32_t, std::vector<int64_t>> m_folded;  // starts of ranges that are open, by thread
    std::map<uint32_t, std::vector<bool>> m_open;       // in the detail, by thread: whether their end is told
    std::set<uint64_t> m_starts;                        // range ids whose end is told
};

}  // namespace rankscope::capture
