// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Ranks in another order: the groups of one role, tensor-parallel ones as a rule, are put inside nodes, group after
/// group onto the present nodes; all other groups end up where their ranks do. Whatever crosses other links than before
/// takes as long as what runs there already, in proportion to what the configured links and NCCL's formulas say of
/// both.
class PlaceGroups : public Edit {
  public:
    /// `communicator`: one of the groups; without it the tensor-parallel ones.
    explicit PlaceGroups(std::optional<int64_t> communicator) : m_communicator(communicator) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::optional<int64_t> m_communicator;
};

std::unique_ptr<Edit> parsePlace(EditArguments& arguments);

}  // namespace rankscope::edits
