// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "collector/store/reader.h"
#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// Lanes of what is measured of a rank over time: memory that it holds by CUDA's allocation calls, how its device does
/// (NVML), and what an imported trace samples. None where nothing of it was recorded. Readings whose time is unknown
/// are left out: those of virtual time have none. Throws store::Error where the file is damaged.
std::vector<Lane> loadCounters(store::TraceReader& reader, const RunInfo& run, int32_t rank);

}  // namespace rankscope::gui
