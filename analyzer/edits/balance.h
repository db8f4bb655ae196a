// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// The same kernels (name and launch shape) take as long on a rank as on its peers, by medians. With `ranks` these
/// change, and the others are the peers; without, every rank that is slower than its peers.
class BalanceSpeed : public Edit {
  public:
    explicit BalanceSpeed(std::vector<int> ranks) : m_ranks(std::move(ranks)) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::vector<int> m_ranks;
};

/// Work is shared evenly among ranks of one role (a pipeline stage, or all): each kernel name takes the mean over them
/// in every step. Grouped messages (tokens to experts) are shared evenly as well.
class BalanceWork : public Edit {
  public:
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
};

std::unique_ptr<Edit> parseBalance(EditArguments& arguments);

}  // namespace rankscope::edits
