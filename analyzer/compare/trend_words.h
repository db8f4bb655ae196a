// SPDX-License-Identifier: Apache-2.0
// What the renderers of a trend share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzer/compare/trend.h"

namespace rankscope::compare {

/// "2026-11-24", of UTC; "-": not known.
std::string dayText(const std::optional<int64_t>& unixNs);

/// "RS402 frequent host synchronisation, ranks 0-3, its repair saves 7.30 ms a step".
std::string findingText(const TrendFinding& finding);

/// "36 runs of 2 kinds of job"; what was left out is told.
std::string holdsText(const Trend& trend);

}  // namespace rankscope::compare
