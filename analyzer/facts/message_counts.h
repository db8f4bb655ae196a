// SPDX-License-Identifier: Apache-2.0
// Messages of one analysed step, by who sends to whom.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::facts {

struct SentMessage {
    int64_t communicatorId = 0;
    int64_t sentNs = 0;      // start of the send's kernel
    int64_t receivedNs = 0;  // end of the receive's, or of what is known
    int64_t readyNs = -1;    // start of the receive's kernel; -1 unknown
    int64_t bytes = -1;
};

class MessageCounts {
  public:
    /// Reads the middle analysed step. Messages of a few bytes beside large ones (shapes, flags) are left out.
    MessageCounts(const TraceFacts& facts, const std::vector<RankSummary>& ranks);

    int step() const { return m_step; }
    const std::map<std::pair<int, int>, std::vector<SentMessage>>& pairs() const {
        return m_pairs;
    }  // (src, dst), by send
    const std::vector<SentMessage>& between(int src, int dst) const;
    /// Every message a sends to b leaves in the kernel that receives one from b: members exchange something, as in an
    /// all-to-all.
    bool atOnce(int a, int b) const;
    /// The rank sends to one and receives from another one only.
    bool ring(int rank) const;

  private:
    int m_step = -1;
    std::map<std::pair<int, int>, std::vector<SentMessage>> m_pairs;
    std::map<int, std::pair<std::vector<int>, std::vector<int>>> m_peers;  // rank: sends to, receives from
};

}  // namespace rankscope::facts
