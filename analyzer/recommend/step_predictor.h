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

/// What a change of the job's structure saves, ns per step at equal tokens.
struct EditedStep {
    double savingNs = 0;
    double lowNs = 0;
    double highNs = 0;
    std::vector<std::string> assumed;
};

struct StepPredictor {
    std::string name;      // "replay of the whole step, 0.4 % off"
    bool replayed = false; // of the whole step, all ranks; else a first estimate: good enough to try, not to claim
    double errorNs = 0;    // by how much it misses the step as it is: what it says of a change is known no better
    /// Step time saved, per analysed step in ns; negative where the step gets longer.
    std::function<std::vector<double>(const TransferScale&)> scaledTransfers;
    /// Of a change as `rankscope whatif` spells it; nothing where it cannot be made to this job. Empty without a replay.
    std::function<std::optional<EditedStep>(const std::string& change)> edited;
};

/// By the task graph of all ranks, its transfers scaled and played again. `analysis` must outlive it. Nothing without a replay, or with one that is too far off.
std::optional<StepPredictor> replayPredictor(const Analysis& analysis);

/// Without a task graph: the exposed part of each busy period of the network on the rank that waits least (detectors/faster_network.h). What gets slower counts in full
/// beyond the pause behind it.
StepPredictor busyPeriodPredictor(const Analysis& analysis);

}  // namespace rankscope::analyzer
