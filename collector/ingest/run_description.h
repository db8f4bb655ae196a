// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "collector/ingest/trace_builder.h"

namespace rankscope::collector {

/// What run.json (written by `rankscope run`) tells of the run. A missing file leaves the facts empty; an unreadable
/// one is a loss.
RunFacts describeRun(const std::filesystem::path& runDirectory, std::vector<store::Loss>& losses);

}  // namespace rankscope::collector
