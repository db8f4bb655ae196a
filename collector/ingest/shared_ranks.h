// SPDX-License-Identifier: Apache-2.0
// Ranks of one trace that several processes read. What goes between them, in this order:
//
//   1. each to the first, for each of its ranks: what the joins need of it (RankSummary) and the texts of its events by
//      first use
//   2. the first to each: the RankTranslation of each of its ranks
//   3. each to the first, for each of its ranks: its rows, encoded
//
// With shards, instead of 3:
//
//   3. each to the first: the extents of what it has written into its shard
//   4. the first to each: the mark of the collection, and the texts of the trace
//   5. each to the first: that its shard is whole, beside its place
//   6. the first to each, one after the other, when its trace.db is whole, too: nothing. The answer is whether the new
//      trace.db is seen, beside its place; else it follows (team/file_copies.h), and another answer
//   7. the first to each, one after the other, to put both in place: nothing. Each answers when it has
//
// The first process gives ids and names in the order of ranks, so that the file is the same whoever reads a rank.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collector/ingest/rank_sources.h"
#include "collector/store/encoded_rows.h"
#include "collector/team/team.h"

namespace rankscope::collector {

/// The texts of a prepared recording's events by first use, as forEachName() comes to them.
std::vector<std::string> namesOf(RankRecording& recording);

/// What a process of the team does while TraceBuilder::finish() is at work in the first. The first knows its ranks.
/// `shard`: the file beside `database` that it writes their events into; empty: the first writes them.
void helpBuildTrace(RankSources& sources, team::Team& team, uint64_t keepBytes, const std::filesystem::path& database,
                    const std::string& shard);

/// In the first process: the extents of the others' shards. `processes`: those that write one, with its name.
std::vector<store::Extent> receiveExtents(team::Team& team, const std::map<int, std::string>& processes);
/// Waits until all shards are whole.
void sealShards(team::Team& team, const std::map<int, std::string>& processes, const std::string& mark,
                const std::vector<std::string>& texts);
/// Has the new trace.db, which is whole in `file`, copied to hosts that do not see it, and then all put in place.
void placeShards(team::Team& team, const std::map<int, std::string>& processes, const std::filesystem::path& file);

}  // namespace rankscope::collector
