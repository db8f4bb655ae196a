// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/importers/flight_dump.h"
#include "collector/importers/reader.h"

namespace rankscope::collector {

/// One rank as its dump tells it. A batch of messages is one group of calls, a batch of collectives one call: NCCL
/// starts and ends each as one, and PyTorch numbers it as one.
FileRank rankFromDump(const FlightDump& dump, std::optional<int32_t> rank);

}  // namespace rankscope::collector
