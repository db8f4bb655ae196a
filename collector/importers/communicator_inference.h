// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// The collectives of one rank that take part in the joins across ranks; small, kept for all ranks while their
/// recordings come and go.
struct RankCalls {
    struct Call {
        size_t index = 0;  ///< into RankRecording::ncclCalls
        store::Op op = store::Op::unknown;
        int64_t startNs = 0;  ///< of the kernel
        int64_t endNs = 0;
        int32_t stream = 0;     ///< position among the rank's streams with collectives, by native id
        uint64_t group = 0;     ///< hash of the process group; 0: not told
        int32_t groupSize = 0;  ///< ranks in it, told without the group; 0 unknown
        std::optional<int64_t> bytes;
        std::optional<int64_t> frameworkSeq;

        /// False where what is told of both says that they are of different collectives.
        bool maybeSameAs(const Call& other) const {
            return op == other.op && (groupSize == 0 || other.groupSize == 0 || groupSize == other.groupSize) &&
                   (!bytes || !other.bytes || *bytes == *other.bytes);
        }
    };
    int32_t rank = 0;
    std::optional<int32_t> worldSize;
    int32_t streamCount = 0;
    std::vector<Call> calls;  ///< in the order of their kernels
};

/// Its world size is not set: a recording does not tell it of a job that was imported in part.
RankCalls collectCalls(const RankRecording& recording);

/// What joining the ranks found for one of them: communicators to add, and each call's communicator and number in it.
struct CallPlan {
    struct Entry {
        size_t index = 0;
        int32_t communicator = -1;  ///< into `communicators`; -1: keeps the one it has
        std::optional<int64_t> seq;
        bool inferred = false;
    };
    std::vector<LocalCommunicator> communicators;
    std::vector<Entry> entries;
};

/// Numbers the collectives of told process groups alike on all members, and infers the communicators of collectives
/// that tell none: ranks whose calls on a stream agree in operation and run at the same time share one. Without such
/// agreement a call stays without communicator, but for one rank alone: there each stream is taken for one group, of as
/// many ranks as the call or the job tells, and its communicator is marked as assumed. One plan per rank.
std::vector<CallPlan> inferCommunicators(const std::vector<RankCalls>& ranks, ImportLosses& losses);

void applyPlan(const CallPlan& plan, RankRecording& recording);

}  // namespace rankscope::collector
