// SPDX-License-Identifier: Apache-2.0
// Processes of this machine that live, and what those left that do not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace rankscope::cli {

// A number of /proc/PID/stat, counted from 1 as proc(5) does, behind the name; 0: there is no such process.
uint64_t processField(pid_t pid, int number);

// When the process was started, in clock ticks since the boot (/proc/PID/stat field 22): tells it from a later one with
// the same pid. 0: there is none.
uint64_t processStart(pid_t pid);

// Is the process one of `ancestors`, or below one of them?
bool descendsFrom(pid_t pid, std::span<const pid_t> ancestors);

// Processes of this machine that still record into the capture folder, ascending. A process that has ended leaves no
// ring file, or one whose name (HOST.PID.START) is that of no process any more.
std::vector<pid_t> liveRanks(const std::filesystem::path& captureFolder);

// Takes away what writers of this database and its shards left beside them when they were killed: .trace.db.PID.part,
// and SQLite's journal of it, of processes that are gone. For callers that know no other host to be writing it: a pid
// tells nothing there.
void removeLeftovers(const std::filesystem::path& database);

}  // namespace rankscope::cli
