// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collector/store/event_model.h"

namespace rankscope::collector {

/// One thread of a process as a file of stacks tells it.
struct ToldStack {
    std::string capture;     ///< file name of its process's capture
    int64_t readUnixNs = 0;  ///< wall-clock time
    store::ThreadStack row;  ///< id, rank and readNs are not known yet
    /// Of recordings in virtual time: the newest that was recorded before, on its host's clock.
    std::optional<int64_t> recordedNs;
};

/// What NAME/stacks of these run directories tells, in the order of time. What cannot be read, and what the files
/// themselves say is missing, becomes a loss.
std::vector<ToldStack> readStackFiles(const std::vector<std::filesystem::path>& runDirectories,
                                      std::vector<store::Loss>& losses);

}  // namespace rankscope::collector
