// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "collector/store/reader.h"

namespace rankscope::gui {

/// What of a run the timeline would not show, or show wrongly, though every question to the file is answered: events
/// that belong to no rank, or to two; values of the wrong type; names that are not there. Empty for a sound file. Reads
/// the small tables, and of the event tables their ends only; what is wrong with the events themselves is found while
/// they are loaded (RankTracks::damage).
std::vector<std::string> findRunDamage(store::TraceReader& reader);

}  // namespace rankscope::gui
