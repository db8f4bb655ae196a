// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "collector/team/team.h"

namespace rankscope::cli {

// A run as the user named it: its name, its directory, or its .db file.
struct RunInput {
    std::filesystem::path directory;  // empty for a lone database
    std::filesystem::path database;   // NAME/trace.db; may not exist yet
    std::filesystem::path captures;   // NAME/capture; empty where there are none
};

// Throws VerbError (exit code 3) when there is no such run.
RunInput findRun(const std::string& name);

// Tells what came of collecting, as far as a verb speaks of it.
struct Collected {
    bool recordedNothing = false;  // no process left a capture file; there is no database then
    std::string summary;           // one line: ranks, events, loss
    int64_t ranks = 0;             // that left a recording
    int64_t missing = 0;           // that the recorded ones tell of and left none
    std::string warning;           // what the user should know besides, or empty
};

// Builds the run's database from its capture files, joined with those of the same job's run directories on other hosts.
// The wrappers of several hosts that share a directory take turns, so that the last one sees every capture file.
// With a team its processes read what they see of these directories.
// `links`: peaks that are told now, for this and all later times; empty: as run.json tells. `shards`: events stay on
// the hosts that read them. Throws store::Error.
Collected collectRun(const RunInput& input, const Console& console,
                     const std::vector<std::filesystem::path>& otherHosts = {}, const std::string& links = {},
                     team::Team* team = nullptr, bool shards = false);

// Throws VerbError (exit code 3) where nothing was recorded into `run`.
void requireRecorded(const Collected& collected, const std::string& run);

// With -v: says what a trace holds, and each thing that it lacks.
void tellContents(const std::filesystem::path& database, const Console& console);

// Collects when the database is missing or older than the captures; says so on stderr, and with -v what the trace
// holds.
void collectOnDemand(const RunInput& input, const Console& console, team::Team* team = nullptr);

// What a process of the team does while its first one is in collectRun() and collectOnDemand(). `runs` as the user
// named them; of those that are not on this host nothing is read.
void helpCollect(const std::vector<std::string>& runs, team::Team& team);
// Waits for the first process to say how the command ended; never returns.
int helpedToTheEnd(team::Team& team);

}  // namespace rankscope::cli
