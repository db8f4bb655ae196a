// SPDX-License-Identifier: Apache-2.0
// Finds what the length of the steps is made of: the chain of tasks in which each began as soon as the one before it
// let it.
#pragma once

#include <string_view>
#include <vector>

#include "analyzer/replay/simulate.h"

namespace rankscope::replay {

enum class PathCategory : uint8_t { compute, transfer, memory, host, launch, gap };
std::string_view toText(PathCategory category);

struct PathShare {
    PathCategory category = PathCategory::compute;
    int rank = 0;
    double nsPerStep = 0;
};

/// Describes a part of the chain, on one rank. `task` is what runs, or what the gap, the launch or the host's work in
/// front of it keeps waiting.
struct PathPiece {
    PathCategory category = PathCategory::compute;
    int rank = 0;
    TaskId task = kNoTask;
    int64_t ns = 0;
};

/// Returns the chain of tasks in front of `task`, from its start back to `fromNs` (graph time): each began as soon as
/// the one before it let it. Latest first.
std::vector<PathPiece> pathBefore(const TaskGraph& graph, const Schedule& schedule, TaskId task, int64_t fromNs);

/// Shares of the steps' time by what the critical path is in, and on which rank; longest first. They add up to the mean
/// length of `steps`, which begins where the first rank begins the first of them and ends where the last one ends.
///
/// `compute`, `transfer`, `memory`: kernels, what NCCL kernels take beyond waiting, copies and sets. `host`: calls and
/// the work between them. `launch`: from a call to the device. `gap`: between dependent pieces of device work. Waiting
/// is no category: the path is where the one is that is waited for.
std::vector<PathShare> criticalPath(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps);

/// Sums up a part of the critical path that is in transfers, by what is transferred.
struct PathTransfer {
    uint32_t communicatorId = 0;  // 0: unknown
    store::Op op = store::Op::unknown;
    double nsPerStep = 0;
};

/// Returns parts that add up to the `transfer` shares of criticalPath() of the same arguments.
std::vector<PathTransfer> criticalTransfers(const TaskGraph& graph, const Schedule& schedule,
                                            const std::vector<int>& steps);

}  // namespace rankscope::replay
