// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collector/store/vocabulary.h"

namespace rankscope::collector {

/// One collective of one rank, in the order of its kernels.
struct SequencedCall {
    size_t call = 0;  ///< index into RankRecording::ncclCalls
    store::Op op = store::Op::unknown;
    int64_t startNs = 0;  ///< of its kernel, on a clock all ranks share
    int64_t endNs = 0;
    std::optional<int64_t> frameworkSeq;  ///< torch.distributed's own number
    /// Of calls whose group is not told: what tells them apart from others' calls.
    std::optional<int64_t> bytes = {};
    int32_t groupSize = 0;
};
using CallSequence = std::vector<SequencedCall>;

/// How two ranks' sequences of collectives on one communicator lie against each other: call j of `other` is call j +
/// shift of `reference`.
struct Alignment {
    int64_t shift = 0;
    bool timesAgree =
        false;  ///< the paired kernels ran at the same time and ended together, as members of one collective must
};

/// Finds it by operation and time; recordings of ranks need not begin with the same collective. Empty when the
/// sequences cannot belong to one communicator. Sequences that agree in number and every operation are accepted without
/// agreeing times (the clocks may differ).
std::optional<Alignment> alignSequences(const CallSequence& reference, const CallSequence& other);

}  // namespace rankscope::collector
