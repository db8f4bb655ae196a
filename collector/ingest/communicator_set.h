// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/ingest/rank_summary.h"

namespace rankscope::collector {

struct JoinedMember {
    int32_t summary = 0;  ///< index of the rank's summary
    int32_t local = 0;    ///< index of the communicator in it
    int32_t commRank = 0;
};

/// One communicator as all its recorded members saw it.
struct JoinedCommunicator {
    uint64_t hash = 0;
    std::string identity;
    int32_t nRanks = 0;
    uint64_t parentHash = 0;  ///< 0 none
    std::string name;
    std::vector<JoinedMember> members;  ///< by commRank

    /// Index into the summaries of the member with this rank in the communicator, -1 when it left no recording.
    int32_t summaryOf(int32_t commRank) const;
};

/// Joins the ranks' communicators by hash. Order: by hash; trace ids come later, when first uses can be compared.
class CommunicatorSet {
  public:
    explicit CommunicatorSet(const std::vector<RankSummary>& summaries);

    const std::vector<JoinedCommunicator>& all() const { return m_joined; }
    /// Index into all() of a rank's local communicator, -1 for -1.
    int32_t joinedOf(int32_t summary, int32_t local) const;

  private:
    std::vector<JoinedCommunicator> m_joined;
    std::vector<std::vector<int32_t>> m_byLocal;
};

}  // namespace rankscope::collector
