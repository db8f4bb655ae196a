// SPDX-License-Identifier: Apache-2.0
// The collectives of a job, run by themselves under every algorithm and protocol: what to run, and what the traces of
// it say.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/recommend/tuner_csv.h"
#include "collector/store/vocabulary.h"

namespace rankscope::recommend {

/// A kind of collective: one row of a tuner file could tell it from others.
struct SweptCollective {
    store::Op op = store::Op::unknown;
    int nodes = 0, ranks = 0;  ///< of the communicator
    int64_t bytes = 0;         ///< whole buffer
    auto operator<=>(const SweptCollective&) const = default;
};

/// Times of one kind of collective, ns from the last member's arrival to the end.
using SweptTimes = std::map<SweptCollective, std::map<costs::AlgorithmChoice, std::vector<double>>>;

struct SweepPlan {
    int worldSize = 0;
    std::string text;        ///< for rankscope-collectives
    size_t collectives = 0;  ///< kinds in it
    std::vector<std::string> leftOut;
};

/// All-reduces, all-gathers and reduce-scatters of a trace: of each kind of communicator those that take most time,
/// `maxSizes` sizes at most, run `times` times by all communicators of the kind at once, as in the job. Throws
/// store::Error when there are none.
SweepPlan planSweep(const std::filesystem::path& trace, int times, size_t maxSizes);

/// Adds the times in a trace of the plan. What NCCL used comes from the trace, never from what it was told; without it
/// nothing is added.
void addSweptTimes(const std::filesystem::path& trace, SweptTimes& times);

/// Algorithms and protocols to try, as tuner rows for everything they exist for.
struct SweepSetting {
    std::string name;  ///< "ring-ll128"
    std::vector<TunerRow> rows;
};
std::vector<SweepSetting> sweepSettings();

struct SweepChoice {
    SweptCollective what;
    costs::AlgorithmChoice standard, best;
    double standardNs = 0, bestNs = 0;  ///< medians
    bool better = false;  ///< by more than `minGainShare`, and three quarters of its times lie under three quarters of
                          ///< the default's
};

/// One per collective of the plan that ran by default, fastest against default.
std::vector<SweepChoice> chooseFromSweep(const SweptTimes& standard, const SweptTimes& all, double minGainShare);

/// Rows where something beats the default. A row covers the measured size and reaches half way (in size ratio) to the
/// next measured one; equal neighbours are joined. Nothing is said beyond the sizes measured.
std::vector<TunerRow> rowsFromSweep(const std::vector<SweepChoice>& choices);

std::string renderSweepText(const std::vector<SweepChoice>& choices);
/// Schema rankscope.sweep/1.
std::string renderSweepJson(const std::vector<SweepChoice>& choices, const std::vector<TunerRow>& rows);

}  // namespace rankscope::recommend
