// SPDX-License-Identifier: Apache-2.0
// Which ranks of a job communicate with each other. Ranks are ordered as in Megatron-LM
// (megatron/core/parallel_state.py): tensor-parallel neighbours first, then expert- and data-parallel ones, then
// pipeline stages.
#pragma once

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// One of the disjoint sets into which a dimension cuts the job: all sets of a dimension have one size.
struct RankSet {
    int colour = 0;  ///< which set
    int size = 1;
    int rank = 0;  ///< this rank's place in it
};

class Layout {
  public:
    Layout(const Parallel& parallel, int rank);

    int tensorRank() const { return m_tensorRank; }
    int dataRank() const { return m_dataRank; }
    int stage() const { return m_stage; }

    RankSet tensor() const;      ///< the parts of one layer
    RankSet data() const;        ///< the replicas of one part
    RankSet pipeline() const;    ///< the stages of one replica's part
    RankSet expert() const;      ///< ep of the replicas: they hold different experts
    RankSet expertData() const;  ///< the replicas that hold the same experts

  private:
    Parallel m_parallel;
    int m_tensorRank;
    int m_dataRank;
    int m_stage;
};

/// Sharding inside each node, replicas across nodes.
RankSet nodeRanks(const Cluster& cluster, int rank);
RankSet sameLocalRanks(const Cluster& cluster, int rank);

}  // namespace rankscope::reference
