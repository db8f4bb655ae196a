// SPDX-License-Identifier: Apache-2.0
// Plays the parts of a pipeline's steps in another order.
#pragma once

#include "analyzer/edits/pipeline_parts.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {

/// The recorded steps with another schedule: kernels, copies, calls of the host and collectives of a pass move as they
/// are, sends and receives are made anew with the measured times of the present ones. What comes before the first step
/// is left out. Throws EditError.
replay::TaskGraph rebuildPipeline(const replay::TaskGraph& graph, const job::Analysis& analysis,
                                  const PipelineParts& parts, const PipelineShape& shape);

}  // namespace rankscope::edits
