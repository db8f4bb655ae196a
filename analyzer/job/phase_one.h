// SPDX-License-Identifier: Apache-2.0
// Each rank for itself: by the threads of one process, or of several. Which process takes a rank changes nothing of
// what comes of it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/replay/rank_tasks.h"

namespace rankscope::job {

struct PhaseOne {
    facts::TraceFacts facts;
    replay::ReplayWindow window;
    std::vector<facts::RankSummary> ranks;             // recorded ranks, by rank
    std::vector<replay::RankTasks> tasks;              // of the same
    std::map<int, facts::MemoryPeaks> memoryOfOthers;  // of the others
    std::vector<int> taking{0};                        // processes of the team that take part
    std::map<int32_t, std::string> shardOfRank;
};

/// One rank's events are in memory per worker. With a team its processes share out the recorded ranks
/// (dealRanks()), those of them that see the same trace.db.
///
/// What goes between them: the first process tells all the size and a checksum of its trace.db, or the mark of its
/// shards; each says whether it has the same, and which of the shards it sees, and is told who has. Those that have
///
/// - send the first a part each of the instances of collectives and messages (facts::Instances),
/// - are asked for shards that the first must have itself, to tell how a job failed or where there are no steps: for
///   none of most jobs (team/file_copies.h),
/// - are told whether the first goes on alone, as it does then, and else get all instances, and what is replayed
///   (replay::ReplayWindow),
/// - read the other small tables and their ranks for themselves, a rank where its shard is seen, and send the first, as
///   they read on, of each rank a facts::RankSummary and a replay::RankTasks in one message, by rank, and behind them
///   the memory of ranks without device activity, and what their observer has seen.
PhaseOne phaseOne(const std::filesystem::path& database, const LoadOptions& options);

/// What a process of the team does meanwhile.
struct PhaseOneHelp {
    unsigned workers = 0;  // 0: its share of the cores
    std::function<RankObserver(const facts::TraceFacts&)> observer = {};
    std::function<std::string()> give = {};  // what the observer has seen, for LoadOptions::takeObserved
};
/// Nothing where it does not see the trace.
std::optional<facts::TraceFacts> helpPhaseOne(const std::filesystem::path& database, team::Team& team,
                                              const PhaseOneHelp& help);

/// The analysis that readAnalysis() returns in the first process, as far as plays need it (packed_job.h): the first
/// joins the ranks and sends it.
std::optional<Analysis> helpReadAnalysis(const std::filesystem::path& database, team::Team& team,
                                         const PhaseOneHelp& help);

}  // namespace rankscope::job
