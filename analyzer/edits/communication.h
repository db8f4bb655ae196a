// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// Kernels beside communication progress as they do alone, by what contention the analysis has measured
/// (facts/contention.h).
class NoContention : public Edit {
  public:
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
};

/// Gradients are reduced once a step, by the last of `microSteps` equal sequences of reductions.
class ReduceOnce : public Edit {
  public:
    explicit ReduceOnce(int microSteps) : m_microSteps(microSteps) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    int m_microSteps;
};

std::unique_ptr<Edit> parseNoContention(EditArguments& arguments);
std::unique_ptr<Edit> parseReduceOnce(EditArguments& arguments);

}  // namespace rankscope::edits
