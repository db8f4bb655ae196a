// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

struct SweepRequest {
    std::string trace;             // the run whose collectives are repeated
    std::filesystem::path folder;  // for plan, runs and result
    Environment environment;
    double limitS = 0;  // of one run; 0: derived from the default's
    bool json = false;
    // The command that records the program with its plan into a folder, with a tuner file or none.
    std::function<std::vector<std::string>(const std::filesystem::path& run, const std::string& tunerFile,
                                           const std::vector<std::string>& program)>
        command;
};

// Repeats the collectives of a run under every algorithm and protocol NCCL has for them; writes sweep.csv, a tuner
// file, where something beats the default, and the table to stdout. Throws VerbError when the default cannot be
// measured.
void sweepCollectives(const SweepRequest& request, const Console& console);

}  // namespace rankscope::cli
