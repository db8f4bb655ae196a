// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::cli {

// Written beside and renamed, so that a reader never sees half a report. What is no regular file (a device, a pipe) is written to as it is: a
// rename would put a file in its place. A link keeps pointing to what it points to. Throws VerbError (exit code 3).
void writeOutputFile(const std::string& text, const std::string& name);

}  // namespace rankscope::cli
