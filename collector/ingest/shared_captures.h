// SPDX-License-Identifier: Apache-2.0
// The captures of a run that several processes see: all the same folder, or each its host's, or some of both. What goes
// between them, before what shared_ranks.h tells:
//
//   1. each to the first: the files that it sees (CaptureFile), of which those that several see are one; names of the
//      files of NAME/health and NAME/stacks, which are read where the first sees them only: others are a loss
//   2. the first to each: those that it shall look at
//   3. each to the first: what it saw (CaptureLook)
//   4. the first to each: the ranks that it shall read (CaptureChoice), how much of them it may keep in memory, and the
//      name of its shard, where it is to write one
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collector/ingest/capture_set.h"
#include "collector/team/team.h"

namespace rankscope::collector {

/// In the first process: as findCaptures() of all that any of them sees.
CaptureSet findCaptures(const std::vector<std::filesystem::path>& directories, team::Team& team);
/// Tells each process its ranks: those of the files that it has looked at. `shards`: by process, the name of each that
/// has ranks; empty where their events go into trace.db.
void dealOut(const std::vector<CaptureChoice>& ranks, uint64_t keepBytes, const std::vector<std::string>& shards,
             team::Team& team);

/// The ranks of a process that is not the first.
struct DealtRanks {
    std::vector<CaptureChoice> ranks;
    uint64_t keepBytes = 0;
    std::string shard;  // its name; empty: none
};
DealtRanks helpFindCaptures(const std::vector<std::filesystem::path>& directories, team::Team& team);

}  // namespace rankscope::collector
