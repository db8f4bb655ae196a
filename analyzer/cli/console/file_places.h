// SPDX-License-Identifier: Apache-2.0
// Places in the file system that the user named: what stands in the way of reading or writing there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"

namespace rankscope::cli {

/// Says what stands at a place where a file or a folder was expected: "is a pipe", "links to nothing", "cannot be read:
/// Permission denied". Empty: nothing at all, or a file or folder that can be read.
std::string obstacleAt(const std::filesystem::path& place);

/// Says before any work is done that `output` cannot be written where it is (no such folder, a folder itself), or that
/// it would replace what is read: one of `inputs`, as the user named them (runs, .db files, summaries, baseline
/// folders, settings). Throws VerbError (exit code 2 or 3). An empty name is stdout.
void checkOutput(const std::string& output, const std::vector<std::string>& inputs);

/// Makes sure that no two of them are one file. Devices and pipes may be named twice. Throws VerbError (exit code 2).
void requireDifferentFiles(const std::vector<std::string>& outputs);

/// Returns all of a file. Throws VerbError (exit code 3).
std::string readFile(const std::filesystem::path& file);

/// Writes a verb's result into the file, or to stdout where none is named. Throws VerbError and
/// std::filesystem::filesystem_error.
void giveResult(const std::string& text, const std::string& file, const Console& console);

}  // namespace rankscope::cli
