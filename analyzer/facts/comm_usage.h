// SPDX-License-Identifier: Apache-2.0
// Describes how one rank uses each communicator in a typical step, and tells from that what for.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "analyzer/facts/layout.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::facts {

/// Holds of one communication kernel what a role shows by.
struct CommUseEvent {
    store::Op op = store::Op::unknown;
    int64_t bytes = -1;   // -1 unknown
    double position = 0;  // share of the step's compute that is done when it starts
    int64_t durationNs = 0;
    int64_t computeMeanwhileNs = 0;  // compute that went on beside it
};

/// Holds the events of a communicator in one step of one member, by start. Those too small to carry parameters,
/// gradients or activations are only counted.
struct CommUsage {
    int rank = -1;  // whose view it is
    std::vector<CommUseEvent> events;
    int tiny = 0;

    int count(store::Op op) const;
    int64_t bytes(store::Op op) const;  // sum; -1 when a size is unknown
    /// Returns the share of these operations beside which compute stands still.
    double blocking(store::Op op) const;
    /// Returns the positions of these operations, by start.
    std::vector<double> positions(store::Op op) const;

    // Messages up to this size are loss values, flags, norms or token counts; a gradient of one bias vector is larger.
    static constexpr int64_t kTinyBytes = 1024;
    // Less compute than this share of the operation's time beside it is the end of what ran before.
    static constexpr double kStill = 0.3;
    static constexpr int64_t kTinyShare = 1000;  // of the communicator's largest message: a metric beside tensors
};

/// Returns the index of the rank's middle analysed step that has compute; -1 when there is none.
int typicalStep(const RankSummary& rank, const RankFacts& facts);

/// Reads the usage of each communicator, seen from the first recorded member that uses it in its typical step. Linear
/// in the communication kernels of that step.
std::map<int64_t, CommUsage> commUsages(const TraceFacts& facts, std::span<const RankSummary> ranks);

/// Holds what the collectives of a communicator say about the job.
struct RoleEvidence {
    std::map<store::Op, CommUse> uses;
    std::optional<int> zero;  // stage that these operations speak for
    double zeroConfidence = 0;
    std::optional<int> zeroOr;  // stage that would issue the same operations
    bool sequenceParallel = false;
};

RoleEvidence rolesOf(const CommUsage& usage);

}  // namespace rankscope::facts
