// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace rankscope::cli {

/// What stands at a place where a file or a folder was expected: "is a pipe", "links to nothing", "cannot be read:
/// Permission denied". Empty: nothing at all, or a file or folder that can be read.
std::string obstacleAt(const std::filesystem::path& place);

}  // namespace rankscope::cli
