// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/importers/trace_mapping.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Where a rank stands on each axis of its mapping.
using RankPlace = std::vector<int64_t>;

/// One event of a file that a mapping tells how to read.
struct MappedEvent {
    RankPlace place;
    size_t rule = 0;   ///< of the mapping
    int32_t lane = 0;  ///< into MappedEvents::texts
    int32_t name = 0;  ///< likewise
    int64_t startNs = 0;
    int64_t durNs = 0;
    std::optional<int64_t> step;
};

struct MappedEvents {
    LocalStrings texts;
    std::vector<MappedEvent> events;
    uint64_t seen = 0;  ///< events of the file, needed or not
    ImportLosses losses;
};

/// Reads a file by a mapping. Throws ImportError where nothing in it is an event that the mapping knows.
MappedEvents readMappedEvents(const TraceMapping& mapping, const std::filesystem::path& file);

}  // namespace rankscope::collector
