// SPDX-License-Identifier: Apache-2.0
// One scenario's findings against the truth.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/score/advice.h"
#include "reference/score/run_report.h"
#include "reference/score/scenario_file.h"

namespace rankscope::score {

/// What became of the advice on the faulty run.
struct FollowedAdvice {
    std::vector<std::string> areas;        ///< of the settings that were made; empty: none was advised that could be
    std::vector<std::string> notFollowed;  ///< recommended, but the scenario has no way to make them
    std::vector<std::string> findings;     ///< that what was followed repairs, by their ids
    bool isRecommended = false;            ///< else a trial
    Promise promise;
    std::optional<double> gainNs;  ///< per step of the faulty run, at equal tokens

    /// Between two runs of the same job that draw other noise.
    static constexpr double kChance = 0.005;
    /// The gain lies in the promised interval, give or take kChance of the step.
    bool isKept(double stepNs) const {
        return gainNs && *gainNs >= promise.low - kChance * stepNs && *gainNs <= promise.high + kChance * stepNs;
    }
};

struct ScenarioScore {
    std::string name;
    std::vector<Claim> expected;
    std::vector<Claim> found;  ///< everything the analyzer claims
    std::vector<Claim> hits;   ///< entries of `expected` that were found where they were expected
    std::vector<Claim> missed;
    std::vector<Claim> falseAlarms;
    std::vector<Claim>
        wrongRank;  ///< the right diagnosis in the wrong place: each is in `missed` and in `falseAlarms` too
    std::optional<double>
        predictedSavingNs;  ///< sum over the findings that are right; empty unless all that was expected was found
    std::optional<double>
        measuredSavingNs;  ///< per step of the faulty run, at equal tokens; empty without a repaired twin
    double faultyStepNs = 0;
    std::vector<Claim> ofTheWorld;  ///< not planted, but true of a drawn world: see judgeWorld()
    std::optional<double> replayError;
    std::optional<FollowedAdvice> advice;  ///< empty: nobody asked for any
    std::optional<PlantedStrength> strength;
    double wallS = 0;
    std::string error;  ///< the scenario could not be run or analyzed

    /// |predicted - measured| / faulty step
    std::optional<double> savingError() const;
    /// measured / faulty step
    std::optional<double> measuredCost() const;
};

/// A fault that is measured to cost this share of the step or more must be found, one below the other must not: the
/// floor for a finding is 3 %, and a good engineer may say either in between.
inline constexpr double kMustBeFoundCost = 0.04;
inline constexpr double kMustNotBeFoundCost = 0.02;

/// `fixed`: the repaired twin's report, or null.
/// Whether one of the ids of `truth` ("RS501/RS503": either is right) is one of those of `claim` ("RS301/RS304": the
/// analyzer says that it is one of them).
bool meet(std::string_view truth, std::string_view claim);

/// A finding fits an expectation when the ids are equal ("RS501/RS503" takes either, and a finding that says "one of
/// these" is met by each of them) and, where the expectation names ranks, the sets of ranks are equal. An expectation
/// without ranks takes every finding of its id. What `allow` covers by the same rule counts neither way; any other
/// finding is a false alarm.
ScenarioScore judge(const Scenario& scenario, const RunReport& faulty, const RunReport* fixed);

/// What a step of the faulty run takes longer than one of another run that takes `tokens` in a step, at equal tokens;
/// empty where one of them has no steps.
std::optional<double> savingBetween(const Scenario& scenario, const RunReport& faulty, double tokens,
                                    const RunReport& after);

/// Whether a false alarm may be about the world that the scenario was put into: one that says that communication takes
/// too long for the compute beside it. That a link is slow (RS204) is never true of a world, whose links reach what
/// healthy ones do: not to say it there is what worlds are drawn for.
bool mayBeOfTheWorld(const Claim& claim);

/// Moves the false alarms that are: the same scenario is faster in the ideal world, where nothing but the model slows
/// its communication, by kMustNotBeFoundCost of the step or more, and by what these findings say together, give or take
/// that much. `findings` are those of the faulty run.
void judgeWorld(const std::vector<Finding>& findings, double idealStepNs, ScenarioScore& score);

/// Clears a false alarm about what was planted, of which the repaired twin gained nothing in its world: the twin's way
/// to repair it is one of several, and where the advice on this finding alone gained kMustNotBeFoundCost of the step,
/// the finding was right. It is a hit from kMustBeFoundCost on, below it counts neither way.
void judgeFollowed(const Scenario& scenario, const FollowedAdvice& advice, ScenarioScore& score);

/// A scenario that failed: everything it expects is missed.
ScenarioScore failed(const Scenario& scenario, const std::string& why);

}  // namespace rankscope::score
