// SPDX-License-Identifier: Apache-2.0
// The collectives of a graph by what is one to NCCL's choice, to be played with another one again and again.
#pragma once

#include <map>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/recommend/job_change.h"

namespace rankscope::recommend {

class ScaledTransfers {
  public:
    /// Both must outlive it.
    ScaledTransfers(const job::Analysis& analysis, const replay::TaskGraph& graph);

    /// Step times of the analysed steps with every transfer scaled, ns. Factors that were played before are looked up.
    const std::vector<double>& stepsNs(const TransferScale& scale);

  private:
    /// A kernel that carries several collectives takes the mean of their factors by bytes.
    std::vector<int64_t> durations(const std::vector<double>& factors) const;

    struct Transfer {
        replay::TaskId task = replay::kNoTask;
        uint32_t key = 0;  // index into m_keys
    };

    const job::Analysis& m_analysis;
    const replay::TaskGraph& m_graph;
    std::vector<MessageKey> m_keys;
    std::vector<Transfer> m_transfers;                             // by task
    std::map<std::vector<double>, std::vector<double>> m_stepsNs;  // by the factors of the keys
};

}  // namespace rankscope::recommend
