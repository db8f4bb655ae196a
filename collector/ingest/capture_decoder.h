// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Which part of which file is a rank.
struct CaptureChoice {
    std::string path;
    std::string name;  ///< path below the run directory, for tables and messages
    int32_t rank = 0;
    /// Of a process that drives several ranks: the CUDA ordinal of this one; -1 the whole process.
    int32_t device = -1;
    int process = 0;               ///< of a team: which one reads it; `path` is one of its own
    std::optional<TimeSpan> part;  ///< as of RankRecording
    bool wentOn = false;           ///< the file is a copy that was made while its process lived
    std::string readFrom = {};     ///< as of CaptureFile
};

/// Reads one rank's capture. Throws capture::CaptureError when the file can no longer be read.
RankRecording decodeCapture(const CaptureChoice& choice);

}  // namespace rankscope::collector
