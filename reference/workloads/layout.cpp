// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/layout.h"

namespace rankscope::reference {

Layout::Layout(const Parallel& parallel, int rank) : m_parallel(parallel) {
    const int others = parallel.dp * parallel.pp;
    m_tensorRank = parallel.tensorOutermost ? rank / others : rank % parallel.tp;
    const int place = parallel.tensorOutermost ? rank % others : rank / parallel.tp;
    m_dataRank = place % parallel.dp;
    m_stage = place / parallel.dp;
}

RankSet Layout::tensor() const {
    return {m_stage * m_parallel.dp + m_dataRank, m_parallel.tp, m_tensorRank};
}

RankSet Layout::data() const {
    return {m_stage * m_parallel.tp + m_tensorRank, m_parallel.dp, m_dataRank};
}

RankSet Layout::pipeline() const {
    return {m_dataRank * m_parallel.tp + m_tensorRank, m_parallel.pp, m_stage};
}

RankSet Layout::expert() const {
    const int sets = m_parallel.dp / m_parallel.ep;
    return {(m_stage * sets + m_dataRank / m_parallel.ep) * m_parallel.tp + m_tensorRank, m_parallel.ep,
            m_dataRank % m_parallel.ep};
}

RankSet Layout::expertData() const {
    return {(m_stage * m_parallel.ep + m_dataRank % m_parallel.ep) * m_parallel.tp + m_tensorRank,
            m_parallel.dp / m_parallel.ep, m_dataRank / m_parallel.ep};
}

RankSet nodeRanks(const Cluster& cluster, int rank) {
    return {rank / cluster.ranksPerNode, cluster.ranksPerNode, rank % cluster.ranksPerNode};
}

RankSet sameLocalRanks(const Cluster& cluster, int rank) {
    return {rank % cluster.ranksPerNode, cluster.nodes, rank / cluster.ranksPerNode};
}

}  // namespace rankscope::reference
