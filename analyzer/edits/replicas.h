// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// More or fewer data-parallel ranks, each with the present work (weak scaling): collectives of gradients and of
/// sharded parameters take as long as NCCL's formulas say of so many ranks on the configured links, in proportion to
/// now. Nodes hold as many of them as now; ranks are added by whole nodes once a node is full.
class Replicas : public Edit {
  public:
    explicit Replicas(int count) : m_count(count) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    int m_count;
};

std::unique_ptr<Edit> parseReplicas(EditArguments& arguments);

}  // namespace rankscope::edits
