// SPDX-License-Identifier: Apache-2.0
// What holds for all timed rows of a recording alike.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/importers/clock_line.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// A correlation id as CUPTI counts them; empty for what is none.
std::optional<uint32_t> correlationOf(std::optional<int64_t> value);
/// How many ranges of its thread each NVTX range lies in; those of no thread stay as they are.
void setDepths(RankRecording& recording);
/// Moves all times of a recording.
void shiftTimes(RankRecording& recording, int64_t byNs);
/// Puts all times, and the lengths between them, on another clock.
void moveTimes(RankRecording& recording, const ClockLine& clock);
/// Start of the earliest event; empty when there is none.
std::optional<int64_t> earliestNs(const RankRecording& recording);
/// Bytes that a recording's rows take, about.
uint64_t sizeInMemory(const RankRecording& recording);

}  // namespace rankscope::collector
