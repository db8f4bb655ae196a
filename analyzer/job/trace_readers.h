// SPDX-License-Identifier: Apache-2.0
// Which processes of a team see a trace.db and its shards, and who reads which rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Says whether two processes have the same trace.db before them: each writing of one changes its first page or its
/// length, and a file of another run differs in both. With shards each host has a copy of what was collected, and
/// results are kept in the first process's alone: there it is the mark of the collection.
struct TraceMark {
    uint64_t bytes = 0;
    uint64_t hash = 0;
    std::string ofShards;
    bool operator==(const TraceMark&) const = default;
};

template <typename Visit>
void forEachField(TraceMark& value, const Visit& visit) {
    auto& [bytes, hash, ofShards] = value;
    visit(bytes, hash, ofShards);
}

/// What a team sees of a trace.db.
struct TraceReaders {
    std::vector<int> taking;                          // processes that see the trace.db
    std::map<std::string, std::vector<int>> ofShard;  // those that see a shard
    unsigned threads = 1;                             // that read ranks in the first of them
};

template <typename Visit>
void forEachField(TraceReaders& value, const Visit& visit) {
    auto& [taking, ofShard, threads] = value;
    visit(taking, ofShard, threads);
}

/// Nothing of a file that is not there, or no trace.db.
TraceMark markOf(const std::filesystem::path& database);

/// The shards of a trace.db that are here; empty where it has none. Looks into all of them: throws store::Error where
/// one is damaged.
std::vector<std::string> shardsHere(const std::filesystem::path& database, const TraceMark& mark);

/// In the first process, of which it says that it sees the trace.db: it tells all its TraceMark, gets from each whether
/// it has the same, and its shards, and tells all the result.
TraceReaders findReaders(const std::filesystem::path& database, const LoadOptions& options);

/// In the first process: has `wanted` shards, which it does not see, copied to it by those that do. Each of the others
/// is told which to send, and sends them (team/file_copies.h).
void fetchShards(const std::filesystem::path& database, const TraceReaders& readers,
                 const std::vector<std::string>& wanted, const LoadOptions& options);

/// Which of TraceReaders::taking reads each rank: of those that see its shard the one that has least to do, so that
/// neighbours, which are alike, are spread, and all are ready at about the same time: the first process also takes over
/// what the others have read. Throws store::Error where nobody sees it.
std::vector<size_t> dealRanks(const std::filesystem::path& database, const std::vector<const facts::RankFacts*>& ranks,
                              const std::map<int32_t, std::string>& shardOfRank, const TraceReaders& readers);

}  // namespace rankscope::job
