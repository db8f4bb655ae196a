// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

struct ProgramOutput {
    ProcessEnd end;
    std::string standardOutput;
    std::string standardError;
};

// Runs a short helper program to its end and keeps what it says. Throws VerbError when it cannot be executed.
ProgramOutput readProgramOutput(const ProcessToStart& program);

}  // namespace rankscope::cli
