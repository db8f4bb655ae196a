// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/recommend/tune_verdict.h"

namespace rankscope::recommend {

/// Holds what a report says of a tuning besides its numbers.
struct TuneReport {
    std::string name;
    std::vector<std::string> command;
    bool virtualGpus = false;
    int rounds = 0;                          ///< asked for
    std::vector<std::string> notes;          ///< why there are fewer, what was left out
    std::string environmentFile, tunerFile;  ///< where the winner is kept; empty: nothing to keep
    TuneResult result;
};

std::string renderTuneText(const TuneReport& report);
/// Schema rankscope.tune/1.
std::string renderTuneJson(const TuneReport& report);

}  // namespace rankscope::recommend
