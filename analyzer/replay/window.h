// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <cstddef>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::replay {

/// The steps that are replayed, by number.
struct ReplayWindow {
    int first = INT_MIN;
    int last = INT_MAX;
    bool whole() const { return first == INT_MIN; }

    /// More tasks than this are not held: while savings are replayed the process has up to 310 bytes a task (64 ranks,
    /// 30 steps), so 1.8 GiB. Beyond, the last steps that fit stand for all.
    static constexpr size_t kMostTasks = 6'000'000;
};

/// Everything, or as many of the last steps as fit into `mostTasks`, two at least.
ReplayWindow replayWindow(store::TraceReader& trace, const facts::TraceFacts& facts,
                          size_t mostTasks = ReplayWindow::kMostTasks);

}  // namespace rankscope::replay
