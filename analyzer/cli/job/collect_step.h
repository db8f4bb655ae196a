// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "analyzer/cli/job/run_input.h"

namespace rankscope::cli {

// What came of collecting, as far as a verb speaks of it.
struct Collected {
    bool recordedNothing = false;  // no process left a capture file; there is no database then
    std::string summary;           // one line: ranks, events, loss
    std::string warning;           // what the user should know besides, or empty
};

// Builds the run's database from its capture files, joined with those of the same job's run directories on other hosts.
// The wrappers of several hosts that share a directory take turns, so that the last one sees every capture file.
// `links`: peaks that are told now, for this and all later times; empty: as run.json tells. Throws store::Error.
Collected collectRun(const RunInput& input, const std::vector<std::filesystem::path>& otherHosts = {},
                     const std::string& links = {});

// Collects when the database is missing or older than the captures; says so on stderr.
void collectOnDemand(const RunInput& input, const Console& console);

}  // namespace rankscope::cli
