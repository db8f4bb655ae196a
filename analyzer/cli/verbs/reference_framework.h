// SPDX-License-Identifier: Apache-2.0
// Jobs of training frameworks: a torchrun for each virtual node, as a user would start them.
#pragma once

#include <vector>

#include "analyzer/cli/job/job_environment.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/cli/verbs/reference_scenario.h"

namespace rankscope::cli {

// Throws VerbError, which names the command that installs them, when the frameworks' Python environment is missing.
void requireFrameworks(const InstallLayout& layout);

// The launchers of the scenario's script. Throws VerbError when the script or a module that it imports is missing.
std::vector<ProcessToStart> launchersOf(const InstallLayout& layout, const ReferenceScenario& scenario,
                                        const JobSettings& settings);

}  // namespace rankscope::cli
