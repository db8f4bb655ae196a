// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collector/ingest/capture_decoder.h"

namespace rankscope::collector {

/// The capture files of one run, each rank once.
struct CaptureSet {
    std::vector<CaptureChoice> ranks;  ///< by rank
    std::vector<store::Loss> losses;   ///< files that could not be read, and duplicates
    size_t filesFound = 0;
    int32_t worldSize = -1;  ///< as the files tell, -1 unknown
    bool virtualGpu = false;
    std::string firstError;  ///< of a file that is no capture, for when nothing is readable
};

/// Looks for *.cap below the directories (a run directory, or those of several hosts). A rank's last elastic attempt
/// counts; of two files of one rank and attempt the one with more GPU work. Files of processes that used no GPU are
/// left out when another knows the rank. What cannot be read becomes a loss. Looks at `threads` files at a time; 0: one
/// per core.
CaptureSet findCaptures(const std::vector<std::filesystem::path>& directories, unsigned threads = 0);

}  // namespace rankscope::collector
