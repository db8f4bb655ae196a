// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/recommend/tune.h"

namespace rankscope::cli {

// Names where `rankscope tune` gets the settings from that it tries.
struct CandidateSources {
    std::vector<std::string> candidates;      // NAME=VALUE[,NAME=VALUE]
    std::vector<std::string> candidateFiles;  // lines of them, or JSON as of `recommend --format json`
    std::vector<std::string> tunerFiles;
    std::string fromRecommend;  // a run

    bool empty() const {
        return candidates.empty() && candidateFiles.empty() && tunerFiles.empty() && fromRecommend.empty();
    }
};

// Returns all of them. `notes` gets what cannot be tried from outside the job. None at all, with a note, when the
// advice asked for is to keep the default. Throws VerbError when there is nothing to try for another reason.
std::vector<recommend::TuneCandidate> candidatesOf(const CandidateSources& sources, std::vector<std::string>& notes);

}  // namespace rankscope::cli
