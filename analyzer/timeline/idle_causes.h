// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/timeline/rank_summary.h"

namespace rankscope::analyzer {

/// Tells why the device idled, from what the host did meanwhile and what ended the idleness. Built once per rank.
class IdleCauses {
  public:
    explicit IdleCauses(const RankEvents& events);
    IdleCause of(const Interval& gap, int64_t stepStartNs) const;

  private:
    struct Start {
        int64_t deviceStartNs = 0;
        int64_t launchNs = -1;  // host time of its launch; -1 unknown
    };
    const RankEvents& m_events;
    std::vector<Start> m_starts;      // of compute and NCCL kernels, by device time
    std::vector<HostCall> m_blocking; // synchronising calls, by start
    std::vector<HostCall> m_memory;   // allocations and frees, by start
};

}  // namespace rankscope::analyzer
