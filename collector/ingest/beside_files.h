// SPDX-License-Identifier: Apache-2.0
// Files that `rankscope run` writes beside the captures: stacks, and readings of devices and ports.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rankscope::collector {

/// The text files in that folder of each run directory, by path; none where there is no such folder.
std::vector<std::filesystem::path> textFilesIn(const std::vector<std::filesystem::path>& runDirectories,
                                               const std::string& folder);

/// All of a file; empty where it cannot be read.
std::string wholeText(const std::filesystem::path& path);

}  // namespace rankscope::collector
