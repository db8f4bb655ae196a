// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/recommend/tune.h"

namespace rankscope::cli {

struct TunePlan {
    std::filesystem::path folder;  // of the tuning; its runs are folders in it
    Environment environment;       // of every run
    int rounds = 5;
    double budgetS = 0;  // 0: none
    double limitS = 0;   // of one run; 0: derived from the default's
    // The command of one run into a folder (relative to `folder`); `tunerFile` is empty without rows.
    std::function<std::vector<std::string>(const std::string& run, const std::string& tunerFile)> command;
};

// Runs the job without and with each candidate, round after round, every second round in reverse order, so that what
// drifts hits all alike. A first run of the default is not counted: it warms up and gives the time limit. A candidate
// that fails is not run again, one that is slower for certain neither. Throws VerbError (exit code 3) when the default
// itself cannot be measured.
void measureRounds(const TunePlan& plan, recommend::TuneResult& result, std::vector<std::string>& notes,
                   const Console& console);

}  // namespace rankscope::cli
