// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Sees the events of each rank while they are in memory; called by several threads at once.
using RankObserver = std::function<void(const facts::RankEvents&)>;

struct LoadOptions {
    unsigned workers = 0;      // threads of phase 1; 0: one per core
    costs::LinkSources links;  // what is said of the links, beside what the trace holds
    /// Makes the observer, once the facts of the trace are known; empty: nobody else wants to see the events. The facts
    /// live until the observer has seen the last rank.
    std::function<RankObserver(const facts::TraceFacts&)> observer;
};

/// What detectors and edits read of a trace: both phases, no findings. `database` is a .db file. Throws store::Error.
Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options = {});

}  // namespace rankscope::job
