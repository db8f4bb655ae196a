// SPDX-License-Identifier: Apache-2.0
// What a setting changes of the job, so that a replay can make it on top of others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::recommend {

/// Collectives that are one and the same to NCCL's choice.
struct MessageKey {
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    int64_t bytes = 0;
    costs::AlgorithmChoice choice;

    auto tie() const { return std::tuple(communicatorId, op, bytes, choice.algorithm, choice.protocol); }
    bool operator<(const MessageKey& other) const { return tie() < other.tie(); }
};

/// New transfer time as a multiple of the present one; 1: unchanged.
using TransferScale = std::function<double(const MessageKey&)>;

/// As expected, and at the ends of what the estimate allows.
struct TransferScales {
    TransferScale expected, pessimistic, optimistic;
};

struct MessageList;

/// What another choice of NCCL's makes of a job's collectives. It is asked anew for the messages of a job that has
/// changed otherwise: other buckets have other sizes. Nothing where NCCL would be left without a choice.
struct TransferChange {
    std::string name;  // of the choice: the same for the same one
    std::function<std::optional<TransferScales>(const MessageList&)> of;

    explicit operator bool() const { return static_cast<bool>(of); }
};

struct JobChange {
    std::vector<std::string> edits;  // as `rankscope whatif --change` spells them, one after the other
    TransferChange transfers;        // empty: as they are

    bool empty() const { return edits.empty() && !transfers; }
};

}  // namespace rankscope::recommend
