// SPDX-License-Identifier: Apache-2.0
// What one stage of a pipeline does in a step, in order: computations of micro-batches and the transfers between them,
// the transfers of one entry grouped into one call. The order is Megatron-LM's
// (megatron/core/pipeline_parallel/schedules.py).
#pragma once

#include <vector>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// An activation that enters or leaves chunk `chunk` of this stage (going forward), or its gradient (going backward).
struct PipelineMessage {
    enum class What { activation, gradient } what;
    bool send;
    int chunk;
    int micro;
    int peer;  ///< stage
};

struct PipelineAction {
    enum class Type { forward, backward, transfer } type;
    int chunk = 0;  ///< of forward and backward
    int micro = 0;
    std::vector<PipelineMessage> messages;  ///< of transfer

    bool receives() const {
        for (const PipelineMessage& message : messages)
            if (!message.send) return true;
        return false;
    }
};

/// `virtualStages`: chunks of layers per stage; chunk c of stage s is part c x stages + s of the model. More than one
/// needs the interleaved schedule, and that needs a number of micro-batches that `stages` divides.
std::vector<PipelineAction> planPipeline(Schedule schedule, int stages, int stage, int microBatches,
                                         int virtualStages = 1);

}  // namespace rankscope::reference
