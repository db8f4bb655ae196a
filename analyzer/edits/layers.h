// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Layers move between the stages of a pipeline. A stage that loses n of its L layers does its passes, and the part of
/// its step that follows its layers (sums of gradients, optimizer), in 1 - n / L of the time; a stage that gets them
/// has their time added. Where kernels do not repeat, no whole layers are known and stages are balanced by fractions.
class MoveLayers : public Edit {
  public:
    struct Move {
        int from = 0;
        int to = 0;
        int count = 1;
    };
    /// Without a move: as many layers as balance the stages best. `parts`: layers can be cut, the stages become even.
    explicit MoveLayers(std::optional<Move> move, bool parts = false) : m_move(move), m_parts(parts) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::optional<Move> m_move;
    bool m_parts;
};

std::unique_ptr<Edit> parseLayers(EditArguments& arguments);

}  // namespace rankscope::edits
