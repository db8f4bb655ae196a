// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rankscope::cli {

// --metrics and --metrics-file, of the verbs that tell of a running job.
void addMetricsOptions(CLI::App& verb, std::string& address, std::string& file);

}  // namespace rankscope::cli
