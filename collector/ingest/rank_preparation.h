// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Brings one recording into the shape the tables have, as far as that needs no other rank: events sorted by start, NCCL kernels marked, calls
/// of each communicator numbered. Ids stay local.
void prepare(RankRecording& recording);

/// True when a kernel's name alone says that it communicates: the last resort where no call proves it.
bool looksLikeNcclKernel(std::string_view kernelName) noexcept;

}  // namespace rankscope::collector
