// SPDX-License-Identifier: Apache-2.0
// The judge of every recommendation: what the whole step gains or loses by a change. A setting that helps one collective and hurts the job does not pass.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/detectors/analysis.h"
#include "analyzer/timeline/nccl_formulas.h"

namespace rankscope::analyzer {

/// Collectives that are one and the same to NCCL's choice.
struct MessageKey {
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    int64_t bytes = 0;
    AlgorithmChoice choice;

    auto tie() const { return std::tuple(communicatorId, op, bytes, choice.algorithm, choice.protocol); }
    bool operator<(const MessageKey& other) const { return tie() < other.tie(); }
};

/// New transfer time as a multiple of the recorded one; 1: unchanged.
using TransferScale = std::function<double(const MessageKey&)>;

struct StepPredictor {
    std::string name;  // "replay of the task graph, error 0.4 %"
    /// Step time saved, per analysed step in ns; negative where the step gets longer.
    std::function<std::vector<double>(const TransferScale&)> scaledTransfers;
};

/// Without a task graph: the exposed part of each busy period of the network on the rank that waits least (detectors/faster_network.h). What gets slower counts in full
/// beyond the pause behind it.
StepPredictor busyPeriodPredictor(const Analysis& analysis);

}  // namespace rankscope::analyzer
