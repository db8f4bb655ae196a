// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Drops what was over before `sinceNs` of the host's clock. The recording has been sorted and its calls are numbered,
/// so that what is left still meets what other ranks did. Calls whose kernel is not known go by their own time.
void keepRecent(RankRecording& recording, int64_t sinceNs);

}  // namespace rankscope::collector
