// SPDX-License-Identifier: Apache-2.0
// What `rankscope recommend` advises (rankscope.recommend/1) on a scenario that says how it is followed there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reference/score/scenario_file.h"

namespace rankscope::score {

/// Time of a step that the advice says will be saved, ns.
struct Promise {
    double expected = 0, low = 0, high = 0;
};

/// Settings that are followed, and those that cannot be, by their areas ("buckets").
struct Advice {
    std::vector<std::string> followed;
    std::vector<std::string> notFollowed;  ///< recommended settings that the scenario has no way to make
    std::vector<std::string> findings;     ///< that what is followed repairs, by their ids
    bool isRecommended = false;            ///< else it is advised as a trial
    Promise promise;                       ///< of what is followed
    Scenario scenario;                     ///< with the settings made; of no use where nothing is followed
};

/// The scenario's `follow` holds, for each setting, what is merged over the scenario (RFC 7386), with "$" in place of
/// the advised value and "$*2048" of so many times it ("1/2 of today's" counts as half); variables of the environment
/// are followed everywhere. Followed is all that is recommended, together, if all of it can be; else the first that
/// can, by itself; where nothing is recommended the first trial. Throws ScenarioFileError for a file that is no such
/// advice, and for a `follow` that makes no scenario.
Advice readAdvice(const std::filesystem::path& file, const Scenario& scenario);

}  // namespace rankscope::score
