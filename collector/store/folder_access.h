// SPDX-License-Identifier: Apache-2.0
// Who may read a run. One rule: a folder of a run is its owner's alone unless it is shared, and a file in it is as open
// as the folder.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace rankscope::store {

/// Makes the folder of a run, and those above it where they are missing. `shared`: as open as the umask has it; else
/// 0700. One that is there stays as it is. Throws std::filesystem::filesystem_error.
void makeRunFolder(const std::filesystem::path& folder, bool shared);

/// Makes a folder that is as open as the one that it lies in.
void makeFolderInside(const std::filesystem::path& folder);

/// The permissions of a file that is made in `folder`: 0600, and what the folder gives others of that.
mode_t fileModeIn(const std::filesystem::path& folder);

/// Where this process writes what is to be `target`: ".NAME.PID.part" beside it, which is renamed when it is whole.
std::filesystem::path partFileOf(const std::filesystem::path& target);

/// Gives a file the permissions of a new one in its folder.
void setFileMode(const std::filesystem::path& file);

}  // namespace rankscope::store
