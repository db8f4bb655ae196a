// SPDX-License-Identifier: Apache-2.0
// Ranks of one trace that several processes read. What goes between them, in this order:
//
//   1. each to the first, for each of its ranks: what the joins need of it (RankSummary) and the texts of its events by
//      first use
//   2. the first to each: the RankTranslation of each of its ranks
//   3. each to the first, for each of its ranks: its rows, encoded
//
// The first process gives ids and names in the order of ranks, so that the file is the same whoever reads a rank.
#pragma once

#include <string>
#include <vector>

#include "collector/ingest/rank_sources.h"
#include "collector/store/encoded_rows.h"
#include "collector/team/team.h"

namespace rankscope::collector {

/// The texts of a prepared recording's events by first use, as forEachName() comes to them.
std::vector<std::string> namesOf(RankRecording& recording);

/// What a process of the team does while TraceBuilder::finish() is at work in the first. The first knows its ranks.
void helpBuildTrace(RankSources& sources, team::Team& team, uint64_t keepBytes);

}  // namespace rankscope::collector
