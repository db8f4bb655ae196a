// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/job/held_signals.h"

namespace rankscope::cli {

// "NAME=VALUE" strings, as execve takes them.
using Environment = std::vector<std::string>;

Environment currentEnvironment();
void setVariable(Environment& environment, const std::string& name, const std::string& value);
void unsetVariable(Environment& environment, const std::string& name);
std::string getVariable(const Environment& environment, const std::string& name);  // empty when unset

struct ProcessToStart {
    std::vector<std::string> command;
    Environment environment;
};

// Tells how a process ended. signal 0: it exited with `status`.
struct ProcessEnd {
    int status = 0;
    int signal = 0;
    bool failed() const { return status != 0 || signal != 0; }
};

ProcessEnd decodeWaitStatus(int status);  // as waitpid gives it

// The words as execve takes them: valid as long as `words` is.
std::vector<char*> pointers(const std::vector<std::string>& words);

// Looks after a job while it runs: `look` is called about every `periodMs`, between signals, and returns soon. What
// either throws is dropped: no job is ended by its watch.
struct JobWatch {
    int periodMs = 0;
    std::function<void()> look;
    std::function<void()> jobHasEnded;  // once all processes are gone
    int ownSignal = 0;                  // that the processes are not to get; 0: none
    std::function<void()> onOwnSignal;
};

struct JobEnd {
    std::vector<ProcessEnd> processes;  // in the order given
    int firstFailed = -1;               // index of the process that failed first, -1: none
    int stopSignal = 0;                 // that somebody ended the job by, through us or beside us; 0: nobody did
};

// Starts the processes and waits until all are gone. Meanwhile every signal that can be caught goes to them, except
// what the terminal has already sent to the whole foreground group and what they sent themselves. This process stops
// and goes on with them. The processes see the signal mask and dispositions that this process was started with. A
// signal sent to a whole group (kill -USR1 -PGID) reaches a process twice: once through us. When one of several fails,
// the others get `gracePeriodMs` to end on their own, then SIGTERM, then SIGKILL, as launchers do. Throws VerbError
// (exit code 126 or 127 as a shell's) when a command cannot be executed. `endWithUs`: the processes get SIGTERM when
// this one dies, even by SIGKILL. For processes that no launcher of the user's looks after.
JobEnd runJob(const std::vector<ProcessToStart>& processes, HeldSignals& signals, int gracePeriodMs,
              bool endWithUs = false, const JobWatch& watch = {});

// Full path of a command as execvp finds it in the environment's PATH; empty when there is none.
std::string findCommand(const std::string& command, const Environment& environment);

// The same. Throws VerbError (exit code 127) when there is none.
std::string requireCommand(const std::string& command, const Environment& environment);

// Ends this process the way the job's process ended: same status, or death by the same signal (without a second core
// dump).
[[noreturn]] void endLike(const ProcessEnd& end);

}  // namespace rankscope::cli
