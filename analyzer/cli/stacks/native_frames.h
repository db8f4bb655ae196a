// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/stacks/process_snapshot.h"

namespace rankscope::cli {

// The frames of each thread of the snapshot, innermost first, by the call frame information of its libraries (libdw):
// "function+0xoffset (library)". Reads the libraries' files, which may be damaged or huge: for a process that may die
// of it. Empty where there are no registers, and where this program was built without libdw.
std::vector<std::vector<std::string>> nativeFrames(const ProcessSnapshot& snapshot);

// False: built without libdw.
bool canUnwind();

}  // namespace rankscope::cli
