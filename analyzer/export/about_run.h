// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::exports {

/// What holds for a run as a whole and stands in no event, as a JSON object: `tool` and `run`, `meta`, the rows of the
/// small tables (host, device, stream, communicator, …) under the tables' names, and `symbols`: the names of kernels by
/// their ids that events tell in another form. `rankscope import` makes the run of it again. The command line and the
/// programs' paths are left out. Throws store::Error.
std::string aboutRun(store::TraceReader& trace);

}  // namespace rankscope::exports
