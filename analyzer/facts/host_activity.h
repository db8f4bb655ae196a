// SPDX-License-Identifier: Apache-2.0
// What a rank's host was in, innermost: operations of an imported trace, the program's ranges, and long calls of CUDA,
// nested as they are on their threads.
#pragma once

#include <map>
#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

/// What a host was in longest in some time, by name.
struct HostDoing {
    int32_t nameId = 0;  // 0: in nothing that is recorded
    int64_t ns = 0;
};

class HostActivity {
  public:
    explicit HostActivity(const RankEvents& events);

    /// Of the thread; where that was in nothing for more than half of the time, of whichever other was in one thing
    /// longest.
    HostDoing mostly(int32_t threadId, int64_t fromNs, int64_t toNs) const;

    enum class Kind : uint8_t { operation, range, call };
    struct Entry {
        int64_t startNs = 0;
        int64_t endNs = 0;
        int64_t ownNs = 0;     // in nothing else of this list
        int64_t usualNs = -1;  // of an operation; -1 unknown
        int64_t id = 0;        // row of nvtx (operations) or api_call; 0 ranges
        int32_t nameId = 0;
        int32_t around = -1;  // index in its thread of the entry around it; -1 none
        Kind kind = Kind::operation;
    };
    /// By thread; those of a thread by start, the outer one first.
    const std::map<int32_t, std::vector<Entry>>& threads() const { return m_threads; }

    static constexpr int64_t kLongCallNs = 100'000;  // shorter calls are the pace of launching

  private:
    static HostDoing mostlyOf(const std::vector<Entry>& entries, int64_t fromNs, int64_t toNs);
    std::map<int32_t, std::vector<Entry>> m_threads;
};

}  // namespace rankscope::facts
