// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "collector/importers/import_loss.h"
#include "collector/importers/kineto_header.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// One file, read as a whole. Times in the recording are relative to header.baseTimeNs; its rank is not set.
struct KinetoFile {
    RankRecording recording;
    KinetoHeader header;
    ImportLosses losses;
    uint64_t events = 0;
};

/// Throws ImportError when nothing in the file can be used. `fallbackRank`: the rank to assume where the trace tells
/// none.
KinetoFile readKinetoFile(const std::filesystem::path& file, std::optional<int32_t> fallbackRank = std::nullopt);

/// Moves all times of a recording.
void shiftTimes(RankRecording& recording, int64_t byNs);
/// Start of the earliest event; empty when there is none.
std::optional<int64_t> earliestNs(const RankRecording& recording);
/// Bytes that a recording's rows take, about.
uint64_t sizeInMemory(const RankRecording& recording);

}  // namespace rankscope::collector
