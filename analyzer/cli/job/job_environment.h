// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/cli/job/run_directory.h"

namespace rankscope::cli {

// Holds what the job's processes are told through their environment.
struct JobSettings {
    std::filesystem::path captureFolder;
    RecordingOptions recording;
    bool virtualGpus = false;
    std::string virtualJob;          // key of the virtual GPUs' shared memory; empty: there are none
    std::string scenario;            // path of the scenario whose cluster the virtual GPUs take; empty: their defaults
    std::string links;               // empty: not told
    bool hideMachineLinks = false;   // virtual GPUs: the machine tells nothing of its links either
    std::string tunerRows;           // of --tuner, as tunerRowsForJob gives them
    std::vector<std::string> extra;  // NAME=VALUE of --env
};

// The variables that prepareEnvironment sets or changes: what a launcher must pass to other hosts.
std::vector<std::string> preparedVariables(const JobSettings& settings);

// Sets what --env is given. Throws VerbError (exit code 2) for what is not NAME=VALUE.
void setVariables(Environment& environment, const std::vector<std::string>& assignments);

// The environment of the job: the present one plus the injector. The user's LD_PRELOAD is kept behind ours.
// Throws VerbError when a part of the installation that is needed is missing.
Environment prepareEnvironment(const InstallLayout& layout, const JobSettings& settings);

}  // namespace rankscope::cli
