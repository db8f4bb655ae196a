// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/capture_decoder.h"
#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// A file that may be a capture.
struct CaptureFile {
    std::string path;
    std::string name;       ///< below its run directory
    int32_t directory = 0;  ///< which of them
    /// Of the header, which tells process and host: two folders that have a file of this name and sum have the same, or
    /// a copy.
    uint32_t headCrc = 0;
    std::string readFrom;  ///< a copy of what is asked for of it (followed_captures.h); empty: the file itself
};

/// What one look at a file tells.
struct CaptureGlance {
    capture::FileHeader header{};
    std::map<int32_t, int32_t> rankOfDevice;  ///< of a process that drives several ranks
    int32_t rank = -1;
    int32_t worldSize = -1;
    uint64_t gpuRecords = 0;
    uint64_t ncclRecords = 0;
    uint64_t records = 0;
};

/// A file, and what came of looking at it.
struct CaptureLook {
    std::string path, name;
    int32_t directory = 0;
    int process = 0;       ///< of a team: the one that has looked
    std::string readFrom;  ///< as of CaptureFile
    std::optional<CaptureGlance> glance;
    std::string error;  ///< set when there is no glance
};

/// The capture files of one run, each rank once.
struct CaptureSet {
    std::vector<CaptureChoice> ranks;  ///< by rank
    std::vector<store::Loss> losses;   ///< files that could not be read, and duplicates
    size_t filesFound = 0;
    int32_t worldSize = -1;  ///< as the files tell, -1 unknown
    bool virtualGpu = false;
    std::string firstError;  ///< of a file that is no capture, for when nothing is readable
};

/// The *.cap below the directories, by name in each.
std::vector<CaptureFile> captureFilesIn(const std::vector<std::filesystem::path>& directories);

/// Looks at `threads` files at a time; 0: one per core.
std::vector<CaptureLook> lookAt(const std::vector<CaptureFile>& files, unsigned threads);

/// Which file is which rank. `looks` in the order of captureFilesIn().
CaptureSet choose(const std::vector<CaptureLook>& looks);

/// Looks for *.cap below the directories (a run directory, or those of several hosts). A rank's last elastic attempt
/// counts; of two files of one rank and attempt the one with more GPU work. Files of processes that used no GPU are
/// left out when another knows the rank. What cannot be read becomes a loss.
CaptureSet findCaptures(const std::vector<std::filesystem::path>& directories, unsigned threads = 0);

}  // namespace rankscope::collector
