// SPDX-License-Identifier: Apache-2.0
// What one stage of a pipeline does in a step, in order: computations of micro-batches and the transfers between them, the transfers of one
// entry grouped into one call. The order is Megatron-LM's (megatron/core/pipeline_parallel/schedules.py).
#pragma once

#include <optional>
#include <vector>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// Micro-batches whose activation or gradient moves; nothing for the neighbour that a first or last stage has not.
struct Transfer {
    std::optional<int> sendActivation;
    std::optional<int> receiveActivation;
    std::optional<int> sendGradient;
    std::optional<int> receiveGradient;

    bool sends() const { return sendActivation || sendGradient; }
    bool receives() const { return receiveActivation || receiveGradient; }
};

struct PipelineAction {
    enum class Type { forward, backward, transfer } type;
    int micro = 0;      ///< of forward and backward
    Transfer transfer;  ///< of transfer
};

std::vector<PipelineAction> planPipeline(Schedule schedule, int stages, int stage, int microBatches);

}  // namespace rankscope::reference
