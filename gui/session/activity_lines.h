// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "collector/store/reader.h"
#include "gui/timeline/activity_bins.h"

namespace rankscope::gui {

/// What each rank's GPU did, by rank, as `rankscope analyze` left it (analyzer/facts/activity_line.h). Empty where the
/// run is not analysed, or by a version older than the table; a line that makes no sense, or cannot be read, is left
/// out, since the rank's events will tell.
std::map<int32_t, ActivityBins> readActivityLines(store::TraceReader& reader);

}  // namespace rankscope::gui
