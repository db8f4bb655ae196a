// SPDX-License-Identifier: Apache-2.0
// What the score reads of a scenario: the truth that was planted. The job itself is the workload's business.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope::score {

/// One entry of `expect` or `allow`, or one finding. Ranks are sorted; none: the place is not told.
struct Claim {
    std::string id;
    std::vector<int> ranks;
    bool operator==(const Claim&) const = default;
};

/// "RS301 ranks 3,5"
std::string toText(const Claim& claim);
std::string toText(const std::vector<Claim>& claims);

/// The fault of a generated scenario: levels of one fault are compared over seeds to find the weakest that is still
/// detected.
struct PlantedStrength {
    std::string fault;      ///< small_buckets
    std::string diagnosis;  ///< RS202
    int level = 0;          ///< 0 is the weakest
    std::string text;       ///< "kb 512"
};

struct Scenario {
    std::string name;
    std::string json;    ///< the whole file
    std::string origin;  ///< the user's file, or the generated scenario's name
    std::vector<Claim> expect;
    std::vector<Claim> allow;
    bool hasFixed = false;
    bool plantsFailure = false;  ///< the job is meant to die
    bool rareSteps = false;      ///< the cost sits in few steps: the mean step shows it, the median does not
    double tokens = 0;           ///< per step, as given and with the repair; their ratio makes savings comparable
    double fixedTokens = 0;
    bool decidedByCost =
        false;                ///< generated: whether the fault must be found is decided by what it is measured to cost
    bool drawnWorld = false;  ///< setWorld() has put it into one
    std::optional<PlantedStrength> strength;
    /// Variables that somebody sets, or unsets, around the job.
    std::vector<std::pair<std::string, std::optional<std::string>>> environment;
    std::string error;  ///< the file is no scenario
};

struct ScenarioFileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws ScenarioFileError, which names `origin` and the key. Only what the score needs is checked here; the workload
/// checks the rest.
Scenario parseScenario(const std::string& text, const std::string& origin);

/// The same number for a text everywhere (FNV-1a).
uint64_t hashOf(std::string_view text);

/// Puts the scenario, and its repaired twin with it, into a world of its own: by its name and `draw`, or into the ideal
/// one where that is 0. One that names its world stays there.
void setWorld(Scenario& scenario, int draw);

}  // namespace rankscope::score
