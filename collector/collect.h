// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::team {
class Team;
}

namespace rankscope::collector {

/// What looks at a run that is being recorded keeps from one to the next (ingest/followed_captures.h).
class FollowedCaptures;
/// `folder`: for its files, of the caller's own; it is made when it is needed.
std::shared_ptr<FollowedCaptures> followCaptures(const std::filesystem::path& folder);

struct CollectOptions {
    std::vector<std::filesystem::path> moreDirectories;  ///< run directories of other hosts, joined with the first
    std::filesystem::path output;                        ///< empty: trace.db in the run directory
    std::string links;  ///< peaks of the links as the user tells them (store::parseLinkSpec); empty: as run.json does
    /// Only what began in this span of the captures' clocks (first, last): for a look at a job that runs.
    std::optional<std::pair<int64_t, int64_t>> part;
    /// Its other processes call helpCollect() meanwhile: captures that they see too are dealt out to them, and what
    /// they alone see is part of the run.
    team::Team* team = nullptr;
    /// With a part: reads on from where the look before stood, instead of from the beginning.
    FollowedCaptures* followed = nullptr;
    /// Events stay where they are read: in a shard of each process beside its trace.db (store/shards.h).
    bool shards = false;
    unsigned threads = 0;             ///< 0: one per core
    uint64_t keepBytes = 1ull << 30;  ///< packed events kept in memory; ranks beyond it are read twice
};

struct CollectResult {
    std::filesystem::path file;
    std::vector<int32_t> ranks;  ///< that left a recording, ascending
};

/// Makes trace.db of the capture files of a run. Ranks that are missing or died, and files that are damaged, become
/// losses in it. Throws store::Error when there is nothing to read or the file cannot be written; an older trace.db is
/// then still there. Throws team::MemberFailed where a process of the team fails.
CollectResult collect(const std::filesystem::path& runDirectory, const CollectOptions& options = {});

/// What a process of a team does while the first is in collect(). `directories`: those of the run that it sees; they
/// may be none.
void helpCollect(const std::vector<std::filesystem::path>& directories, team::Team& team);

}  // namespace rankscope::collector
