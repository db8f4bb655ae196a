// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "analyzer/export/exported_event.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::exports {

/// Selects what of a run is told.
struct ExportSelection {
    std::vector<int> ranks;                    // empty: all
    std::optional<std::pair<int, int>> steps;  // first and last number; what begins in them. Empty: everything
};

/// Tells a sink the run, or the selected part of it, rank by rank, each table streamed. In memory are the names, 40
/// bytes per member of a collective, and 8 bytes per launch of one rank. Throws store::Error.
void walkTrace(store::TraceReader& trace, ExportSink& sink, const ExportSelection& selection = {});

}  // namespace rankscope::exports
