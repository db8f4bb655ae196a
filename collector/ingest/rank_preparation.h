// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Brings one recording into the shape the tables have, as far as that needs no other rank: events sorted by start,
/// NCCL kernels marked, calls of each communicator numbered. Ids stay local.
void prepare(RankRecording& recording);

}  // namespace rankscope::collector
