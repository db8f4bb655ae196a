// SPDX-License-Identifier: Apache-2.0
// Scores of scenarios, added up.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/score/verdict.h"

namespace rankscope::score {

struct Counts {
    int truePositives = 0;
    int falseAlarms = 0;
    int missed = 0;
    int wrongRank = 0;

    double precision() const;  ///< 1 when nothing was claimed
    double recall() const;     ///< 1 when nothing was expected
    double f1() const;
};

/// All seeds of one fault at one strength.
struct StrengthLevel {
    PlantedStrength strength;
    int seeds = 0;
    int found = 0;
    double medianCost = 0;  ///< share of the faulty step, measured
};

struct DiagnosisTally {
    Counts counts;
    std::vector<StrengthLevel> levels;  ///< by fault, then from weak to strong
    /// Per fault the weakest level that is found in at least kDetectedShare of the seeds, as are all stronger ones.
    /// Levels whose cost lies under kMustBeFoundCost are not asked to be found, but count when they are.
    std::vector<StrengthLevel> detectionLimits;
};

inline constexpr double kDetectedShare = 0.95;

struct Tally {
    Counts total;
    std::map<std::string, DiagnosisTally> byDiagnosis;
    int healthy = 0;  ///< scenarios that expect nothing
    int errors = 0;
    int promises = 0, promisesKept = 0;                         ///< of advice that was followed
    std::optional<double> savingErrorMedian, savingErrorWorst;  ///< shares of the faulty step
    std::optional<double> replayErrorMedian, replayErrorWorst;
};

Tally addUp(std::span<const ScenarioScore> scores);

}  // namespace rankscope::score
