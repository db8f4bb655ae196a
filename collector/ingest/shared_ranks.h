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
//   4. the first to each: the mark of the collection, the texts of the trace, and the names of all shards
//   5. each to the first: that its shard is whole, beside its place
//   6. the first to each, one after the other: to put it there. The answer is whether trace.db is there, too; else it
//      follows (team/file_copies.h), and a last answer says that it is written
//
// The first process gives ids and names in the order of ranks, so that the file is the same whoever reads a rank.
#pragma once

#include <filesystem>
#include <map>
#include <set>
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
/// Waits until all shards are whole: they are `files`, with the first process's own.
void sealShards(team::Team& team, const std::map<int, std::string>& processes, const std::string& mark,
                const std::vector<std::string>& texts, const std::set<std::string>& files);
/// Has them put in place, and trace.db, which is in its place, copied to hosts that do not see it.
void placeShards(team::Team& team, const std::map<int, std::string>& processes, const std::filesystem::path& database);

}  // namespace rankscope::collector
