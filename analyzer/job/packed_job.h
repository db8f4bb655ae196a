// SPDX-License-Identifier: Apache-2.0
// A job for processes that only play it (diagnose/plays.h): the graph as it was joined, and what edits read beside it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Calls `send` with one message after the other. What the receiver reads in the trace itself is not among them, nor
/// what no edit reads: of a rank's summary only contention, stalls, pauses and use of its host (of its kernels, what
/// RecordedJob::works tells). `tables` are those that
/// the analysis was made with.
void packForPlays(const Analysis& analysis, const std::vector<costs::NcclTestsTable>& tables,
                  const std::function<void(std::string_view)>& send);

/// An analysis of which every change plays as it does of the one that was packed; it has no replay.unchanged, which
/// critical paths and delays are told from. `facts`: of the same trace;
/// `receive` gives the messages of `sender`, in their order, each
/// until the next.
Analysis unpackForPlays(facts::TraceFacts facts, const std::function<std::string_view()>& receive,
                        const std::string& sender);

}  // namespace rankscope::job
