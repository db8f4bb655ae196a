// SPDX-License-Identifier: Apache-2.0
// Programs that are run to their end, with their output kept.
#pragma once

#include <filesystem>
#include <string>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

struct ProgramOutput {
    ProcessEnd end;
    std::string standardOutput;
    std::string standardError;  // without the newlines at its end
};

// Runs a short helper program to its end and keeps what it says. Throws VerbError when it cannot be executed.
ProgramOutput readProgramOutput(const ProcessToStart& program);

struct TimedEnd {
    ProcessEnd end;
    double wallS = 0;
    bool overTime = false;  // it was ended at the limit
    int interruptedBy = 0;  // signal that this process got and handed on; the job is gone
};

// Runs one process with its output in a file and ends it at `limitS` (0: no limit): SIGTERM, and SIGKILL ten seconds
// later, to it and to everything it has started, also what has left its process group. Every signal to this process
// that would end it ends the job first. Throws VerbError when the process cannot be started.
TimedEnd runTimed(const ProcessToStart& process, const std::filesystem::path& output, double limitS);

}  // namespace rankscope::cli
