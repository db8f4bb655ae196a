// SPDX-License-Identifier: Apache-2.0
// What a pipeline stage does in which order: GPipe (arXiv:1811.06965), 1F1B and interleaved 1F1B (arXiv:2104.04473),
// with the grouping of sends and receives of Megatron-LM (core/pipeline_parallel/schedules.py).
#pragma once

#include <compare>
#include <string>
#include <vector>

namespace rankscope::edits {

struct PipelineShape {
    std::string schedule = "1f1b";  // gpipe | 1f1b | interleaved
    int stages = 1;
    int microBatches = 1;
    int virtualStages = 1;
};

/// Places count all virtual stages: place = chunk x stages + stage. An activation goes from its place to the next one,
/// a gradient to the one before.
struct PipelineMessage {
    bool activation = true;
    bool send = true;
    int micro = 0;
    int place = 0;  // of the sender
    int peerStage = 0;

    auto operator<=>(const PipelineMessage&) const = default;
};

struct PipelineAction {
    enum class Kind { forward, backward, transfer };
    Kind kind = Kind::forward;
    int chunk = 0;
    int micro = 0;
    std::vector<PipelineMessage> messages;  // of a transfer: one group of sends and receives

    bool receives() const;
};

/// Actions of one stage in one step. Interleaving needs micro-batches in multiples of the stages; see impossible().
std::vector<PipelineAction> planStage(const PipelineShape& shape, int stage);

/// Why there is no such pipeline; empty: there is.
std::string impossible(const PipelineShape& shape);

}  // namespace rankscope::edits
