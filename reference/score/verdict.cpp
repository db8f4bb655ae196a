// SPDX-License-Identifier: Apache-2.0
#include "reference/score/verdict.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rankscope::score {
namespace {

bool fits(const Claim& truth, const Claim& finding) {
    return meet(truth.id, finding.id) && (truth.ranks.empty() || truth.ranks == finding.ranks);
}

// Faults whose cost decides: see kMustBeFoundCost.
void decideByCost(ScenarioScore& score, std::vector<Claim>& allowed) {
    const std::optional<double> cost = score.measuredCost();
    if (cost && *cost >= kMustBeFoundCost) return;
    if (!cost || *cost >= kMustNotBeFoundCost)
        allowed.insert(allowed.end(), score.expected.begin(), score.expected.end());
    score.expected.clear();
}

double stepOf(const Scenario& scenario, const RunReport& report) {
    return scenario.rareSteps ? report.meanStepNs : report.medianStepNs;
}

void findHits(const std::vector<Finding>& findings, ScenarioScore& score, std::vector<bool>& used) {
    for (const Claim& truth : score.expected) {
        bool hit = false;
        for (size_t i = 0; i < findings.size(); ++i) {
            if (used[i] || !fits(truth, findings[i].claim)) continue;
            used[i] = hit = true;
            if (!truth.ranks.empty()) break;
        }
        // Two expectations of one id without ranks are met by the same findings.
        const bool shared = truth.ranks.empty() && std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
                                return meet(truth.id, f.claim.id);
                            });
        (hit || shared ? score.hits : score.missed).push_back(truth);
    }
}

void predictSaving(const std::vector<Finding>& findings, const std::vector<bool>& used, ScenarioScore& score) {
    if (score.expected.empty() || !score.missed.empty()) return;
    double sum = 0;
    for (size_t i = 0; i < findings.size(); ++i) {
        if (!used[i]) continue;
        if (!findings[i].savingNs) return;
        sum += *findings[i].savingNs;
    }
    score.predictedSavingNs = sum;
}

void findFalseAlarms(const std::vector<Finding>& findings, const std::vector<bool>& used,
                     const std::vector<Claim>& allowed, ScenarioScore& score) {
    for (size_t i = 0; i < findings.size(); ++i) {
        const Claim& claim = findings[i].claim;
        if (used[i] ||
            std::any_of(allowed.begin(), allowed.end(), [&](const Claim& truth) { return fits(truth, claim); }))
            continue;
        score.falseAlarms.push_back(claim);
        if (std::any_of(score.missed.begin(), score.missed.end(),
                        [&](const Claim& truth) { return meet(truth.id, claim.id); }))
            score.wrongRank.push_back(claim);
    }
}

}  // namespace

bool meet(std::string_view truth, std::string_view claim) {
    const auto next = [](std::string_view& ids) {
        const std::string_view id = ids.substr(0, ids.find('/'));
        ids.remove_prefix(std::min(ids.size(), id.size() + 1));
        return id;
    };
    while (!truth.empty()) {
        const std::string_view id = next(truth);
        for (std::string_view ids = claim; !ids.empty();)
            if (next(ids) == id) return true;
    }
    return false;
}

std::optional<double> ScenarioScore::savingError() const {
    if (!predictedSavingNs || !measuredSavingNs || faultyStepNs <= 0) return {};
    return std::abs(*predictedSavingNs - *measuredSavingNs) / faultyStepNs;
}

std::optional<double> ScenarioScore::measuredCost() const {
    if (!measuredSavingNs || faultyStepNs <= 0) return {};
    return *measuredSavingNs / faultyStepNs;
}

std::optional<double> savingBetween(const Scenario& scenario, const RunReport& faulty, double tokens,
                                    const RunReport& after) {
    const double before = stepOf(scenario, faulty), then = stepOf(scenario, after);
    if (before <= 0 || then <= 0 || tokens <= 0) return {};
    return before - then * scenario.tokens / tokens;
}

ScenarioScore judge(const Scenario& scenario, const RunReport& faulty, const RunReport* fixed) {
    ScenarioScore score;
    score.name = scenario.name;
    score.expected = scenario.expect;
    score.strength = scenario.strength;
    score.replayError = faulty.replayError;
    score.faultyStepNs = stepOf(scenario, faulty);
    for (const Finding& finding : faulty.findings) score.found.push_back(finding.claim);
    if (fixed) score.measuredSavingNs = savingBetween(scenario, faulty, scenario.fixedTokens, *fixed);
    std::vector<Claim> allowed = scenario.allow;
    // In a drawn world what was planted may cost nothing.
    const bool byWorld = scenario.drawnWorld && score.measuredCost();
    if (scenario.decidedByCost || byWorld) decideByCost(score, allowed);

    std::vector<bool> used(faulty.findings.size(), false);
    findHits(faulty.findings, score, used);
    predictSaving(faulty.findings, used, score);
    findFalseAlarms(faulty.findings, used, allowed, score);
    return score;
}

bool mayBeOfTheWorld(const Claim& claim) {
    return claim.id == "RS103" || claim.id == "RS203";
}

void judgeWorld(const std::vector<Finding>& findings, double idealStepNs, ScenarioScore& score) {
    if (score.faultyStepNs <= 0 || idealStepNs <= 0) return;
    double cost = 1 - idealStepNs / score.faultyStepNs;
    if (cost < kMustNotBeFoundCost) return;
    std::vector<Finding> largestFirst = findings;
    std::ranges::stable_sort(largestFirst, std::ranges::greater{}, &Finding::severity);
    for (const Finding& finding : largestFirst) {
        const auto alarm = std::ranges::find(score.falseAlarms, finding.claim);
        if (alarm == score.falseAlarms.end() || !mayBeOfTheWorld(*alarm) ||
            finding.severity > cost + kMustNotBeFoundCost)
            continue;
        cost -= finding.severity;
        score.ofTheWorld.push_back(*alarm);
        std::erase(score.wrongRank, *alarm);
        score.falseAlarms.erase(alarm);
    }
}

void judgeFollowed(const Scenario& scenario, const FollowedAdvice& advice, ScenarioScore& score) {
    // Of settings made together nobody knows which gained.
    if (advice.findings.size() != 1 || !advice.gainNs || score.faultyStepNs <= 0) return;
    const std::optional<double> cost = score.measuredCost();
    if (!cost || *cost >= kMustBeFoundCost) return;
    const double gain = *advice.gainNs / score.faultyStepNs;
    if (gain < kMustNotBeFoundCost) return;
    const std::string& id = advice.findings.front();
    for (const Claim& truth : scenario.expect) {
        const auto alarm = std::ranges::find_if(
            score.falseAlarms, [&](const Claim& claim) { return claim.id == id && fits(truth, claim); });
        if (alarm == score.falseAlarms.end()) continue;
        std::erase(score.wrongRank, *alarm);
        score.falseAlarms.erase(alarm);
        if (gain < kMustBeFoundCost) continue;
        score.expected.push_back(truth);
        score.hits.push_back(truth);
    }
}

ScenarioScore failed(const Scenario& scenario, const std::string& why) {
    ScenarioScore score;
    score.name = scenario.name;
    score.expected = score.missed = scenario.expect;
    score.strength = scenario.strength;
    score.error = why;
    return score;
}

}  // namespace rankscope::score
