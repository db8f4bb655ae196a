// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {

/// A pipeline runs with other micro-batches of the same size, other virtual stages, or another schedule. More
/// micro-batches are more tokens: EditEffect::tokens.
class PipelineOrder : public Edit {
  public:
    struct To {
        std::optional<int> microBatches;
        std::optional<int> virtualStages;
        std::optional<std::string> schedule;  // gpipe | 1f1b | interleaved
    };
    explicit PipelineOrder(To to) : m_to(std::move(to)) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
    replay::TaskGraph applied(const TrialGraph& of, EditEffect& effect) const override;

  private:
    To m_to;
};

std::unique_ptr<Edit> parseMicroBatches(EditArguments& arguments);
std::unique_ptr<Edit> parseSchedule(EditArguments& arguments);

}  // namespace rankscope::edits
