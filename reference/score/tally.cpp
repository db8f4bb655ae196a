// SPDX-License-Identifier: Apache-2.0
#include "reference/score/tally.h"

#include <algorithm>

namespace rankscope::score {
namespace {

double share(int part, int whole) {
    return whole > 0 ? static_cast<double>(part) / whole : 1.0;
}

double medianOf(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void addClaims(Tally& tally, const std::vector<Claim>& claims, int Counts::*count) {
    for (const Claim& claim : claims) {
        ++(tally.total.*count);
        ++(tally.byDiagnosis[claim.id].counts.*count);
    }
}

void summarise(std::vector<double> values, std::optional<double>& median, std::optional<double>& worst) {
    if (values.empty()) return;
    worst = *std::max_element(values.begin(), values.end());
    median = medianOf(std::move(values));
}

bool wasFound(const ScenarioScore& score, const std::string& id) {
    // A fault too cheap to be demanded is not in `expected`, but may have been found all the same.
    const auto is = [&](const Claim& claim) { return meet(id, claim.id); };
    if (std::any_of(score.expected.begin(), score.expected.end(), is))
        return std::any_of(score.hits.begin(), score.hits.end(), is);
    return std::any_of(score.found.begin(), score.found.end(), is);
}

void findLimits(DiagnosisTally& tally) {
    // Levels are sorted by fault, then strength: from the strongest down as long as enough seeds are found.
    for (size_t end = tally.levels.size(); end > 0;) {
        size_t begin = end;
        while (begin > 0 && tally.levels[begin - 1].strength.fault == tally.levels[end - 1].strength.fault) --begin;
        size_t limit = end;
        while (limit > begin && share(tally.levels[limit - 1].found, tally.levels[limit - 1].seeds) >= kDetectedShare)
            --limit;
        if (limit < end) tally.detectionLimits.insert(tally.detectionLimits.begin(), tally.levels[limit]);
        end = begin;
    }
}

void addLevels(std::span<const ScenarioScore> scores, Tally& tally) {
    std::map<std::string, std::map<std::pair<std::string, int>, std::vector<const ScenarioScore*>>> groups;
    for (const ScenarioScore& score : scores)
        if (score.strength)
            groups[score.strength->diagnosis][{score.strength->fault, score.strength->level}].push_back(&score);
    for (const auto& [id, levels] : groups) {
        DiagnosisTally& diagnosis = tally.byDiagnosis[id];
        for (const auto& [key, members] : levels) {
            StrengthLevel level{*members.front()->strength};
            std::vector<double> costs;
            for (const ScenarioScore* score : members) {
                ++level.seeds;
                if (wasFound(*score, id)) ++level.found;
                if (score->measuredCost()) costs.push_back(*score->measuredCost());
            }
            level.medianCost = medianOf(costs);
            diagnosis.levels.push_back(level);
        }
        findLimits(diagnosis);
    }
}

}  // namespace

double Counts::precision() const {
    return share(truePositives, truePositives + falseAlarms);
}
double Counts::recall() const {
    return share(truePositives, truePositives + missed);
}
double Counts::f1() const {
    const double sum = precision() + recall();
    return sum > 0 ? 2 * precision() * recall() / sum : 0;
}

Tally addUp(std::span<const ScenarioScore> scores) {
    Tally tally;
    std::vector<double> savingErrors, replayErrors;
    for (const ScenarioScore& score : scores) {
        addClaims(tally, score.hits, &Counts::truePositives);
        addClaims(tally, score.missed, &Counts::missed);
        addClaims(tally, score.falseAlarms, &Counts::falseAlarms);
        addClaims(tally, score.wrongRank, &Counts::wrongRank);
        if (!score.error.empty()) ++tally.errors;
        if (score.expected.empty() && score.error.empty()) ++tally.healthy;
        if (score.advice && score.advice->gainNs) {
            ++tally.promises;
            if (score.advice->isKept(score.faultyStepNs)) ++tally.promisesKept;
        }
        if (const auto error = score.savingError()) savingErrors.push_back(*error);
        if (score.replayError) replayErrors.push_back(*score.replayError);
    }
    summarise(std::move(savingErrors), tally.savingErrorMedian, tally.savingErrorWorst);
    summarise(std::move(replayErrors), tally.replayErrorMedian, tally.replayErrorWorst);
    addLevels(scores, tally);
    return tally;
}

}  // namespace rankscope::score
