// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "analyzer/export/exported_event.h"

namespace rankscope::exports {

/// Chrome's trace event format (JSON object with traceEvents), which Perfetto and chrome://tracing open: a process per
/// rank, a thread per track, X events in microseconds with three decimals (whole nanoseconds), flow events from
/// launches to kernels and between the members of a collective. `runName` is told in otherData.
std::unique_ptr<ExportSink> chromeTrace(std::ostream& out, const std::string& runName);

/// One line per event (RFC 4180), the first one with the names of the columns. Unknown values are empty; times are
/// nanoseconds on the job clock.
std::unique_ptr<ExportSink> csvTable(std::ostream& out);

}  // namespace rankscope::exports
