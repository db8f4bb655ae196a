// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "injector/capture_format/stack_file.h"

namespace rankscope::cli {

struct PythonStacks {
    std::vector<capture::ThreadStack> threads;
    std::string refused;  // why there are none; empty: there are, or the process runs no Python
};

// True when a process with these maps (/proc/PID/maps) runs CPython.
bool runsPython(std::string_view maps);

// Asks py-spy, where it is on PATH, which reads the process without stopping it. It gets 20 s.
PythonStacks pythonStacks(pid_t pid);

// Of what `py-spy dump --json` prints. Throws std::exception for what is not that.
std::vector<capture::ThreadStack> parsePySpy(std::string_view json);

}  // namespace rankscope::cli
