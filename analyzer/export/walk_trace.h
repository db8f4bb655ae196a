// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/export/exported_event.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::analyzer {

/// Tells a sink the whole run, rank by rank, each table streamed. In memory are the names, 40 bytes per member of a collective, and 8 bytes per launch of one rank.
/// Throws store::Error.
void walkTrace(store::TraceReader& trace, ExportSink& sink);

}  // namespace rankscope::analyzer
