// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::cli {

/// Said before any work is done: that `output` cannot be written where it is (no such folder, a folder itself), or that
/// it would replace what is read: one of `inputs`, as the user named them (runs, .db files, summaries, baseline
/// folders, settings). Throws VerbError (exit code 2 or 3).
void checkOutput(const std::string& output, const std::vector<std::string>& inputs);

/// That no two of them are one file. Devices and pipes may be named twice. Throws VerbError (exit code 2).
void requireDifferentFiles(const std::vector<std::string>& outputs);

}  // namespace rankscope::cli
