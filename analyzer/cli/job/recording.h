// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/cli/job/run_directory.h"

namespace rankscope::cli {

// A job about to be recorded: its processes (a launcher, or the ranks themselves), ready to start in an open run
// directory.
struct Recording {
    RunDirectory& run;
    std::vector<ProcessToStart> processes;
    std::string shownName;  // the run as the user would type it in the next command
    bool collect = true;
    int gracePeriodMs = 0;               // for the survivors of a failed process
    bool endWithUs = false;              // the processes do not outlive this one
    JobWatch watch;                      // of the job while it runs
    bool health = true;                  // how its devices do is read meanwhile (NAME/health)
    std::vector<std::string> metrics{};  // the command that serves metrics meanwhile; empty: none does
    bool onSeveralHosts = false;         // the job's launcher says so: ranks are expected that another host records
};

// Runs the job, collects if this wrapper is the last one of its host, and says on stderr what was recorded and what to
// type next. A failure after the job's end is reported but does not replace the job's own end, which is returned.
ProcessEnd record(const Recording& recording, const Console& console);

}  // namespace rankscope::cli
