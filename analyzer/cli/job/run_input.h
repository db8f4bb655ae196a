// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace rankscope::cli {

// A run as the user named it: its name, its directory, or its .db file.
struct RunInput {
    std::filesystem::path directory;  // empty for a lone database
    std::filesystem::path database;   // NAME/trace.db; may not exist yet
    std::filesystem::path captures;   // NAME/capture; empty where there are none
};

// Throws VerbError (exit code 3) when there is no such run.
RunInput findRun(const std::string& name);

// True when the database is missing or some capture file is newer than it.
bool needsCollecting(const RunInput& input);

}  // namespace rankscope::cli
