// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/score/score.h"

namespace rankscope::score {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson orNull(const std::optional<T>& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson nanoseconds(const std::optional<double>& value) {
    return value ? OrderedJson(std::llround(*value)) : OrderedJson(nullptr);
}

OrderedJson claimsJson(const std::vector<Claim>& claims) {
    OrderedJson list = OrderedJson::array();
    for (const Claim& claim : claims) {
        OrderedJson entry = {{"id", claim.id}};
        if (!claim.ranks.empty()) entry["ranks"] = claim.ranks;
        list.push_back(entry);
    }
    return list;
}

OrderedJson adviceJson(const ScenarioScore& score) {
    if (!score.advice) return nullptr;
    const FollowedAdvice& advice = *score.advice;
    OrderedJson document = {{"followed", advice.areas}, {"not_followed", advice.notFollowed}};
    if (advice.areas.empty()) return document;
    document["certainty"] = advice.isRecommended ? "recommended" : "try";
    document["promised_ns"] = std::llround(advice.promise.expected);
    document["interval_ns"] = {std::llround(advice.promise.low), std::llround(advice.promise.high)};
    document["gain_ns"] = nanoseconds(advice.gainNs);
    document["kept"] = advice.isKept(score.faultyStepNs);
    return document;
}

OrderedJson scenarioJson(const ScenarioScore& score) {
    OrderedJson document;
    document["name"] = score.name;
    document["expected"] = claimsJson(score.expected);
    document["found"] = claimsJson(score.found);
    document["missed"] = claimsJson(score.missed);
    document["false_alarms"] = claimsJson(score.falseAlarms);
    document["wrong_rank"] = claimsJson(score.wrongRank);
    document["of_the_world"] = claimsJson(score.ofTheWorld);
    document["predicted_saving_ns"] = nanoseconds(score.predictedSavingNs);
    document["measured_saving_ns"] = nanoseconds(score.measuredSavingNs);
    document["saving_error"] = orNull(score.savingError());
    document["step_ns"] = score.faultyStepNs > 0 ? OrderedJson(std::llround(score.faultyStepNs)) : OrderedJson(nullptr);
    document["replay_error"] = orNull(score.replayError);
    document["advice"] = adviceJson(score);
    document["wall_s"] = std::round(score.wallS * 100) / 100;
    document["error"] = score.error.empty() ? OrderedJson(nullptr) : OrderedJson(score.error);
    return document;
}

void addCounts(OrderedJson& document, const Counts& counts) {
    document["true"] = counts.truePositives;
    document["false"] = counts.falseAlarms;
    document["missed"] = counts.missed;
    document["wrong_rank"] = counts.wrongRank;
    document["precision"] = counts.precision();
    document["recall"] = counts.recall();
    document["f1"] = counts.f1();
}

OrderedJson levelJson(const StrengthLevel& level) {
    return {{"fault", level.strength.fault},
            {"strength", level.strength.text},
            {"seeds", level.seeds},
            {"found", level.found},
            {"median_cost", level.medianCost}};
}

OrderedJson levelsJson(const std::vector<StrengthLevel>& levels) {
    OrderedJson list = OrderedJson::array();
    for (const StrengthLevel& level : levels) list.push_back(levelJson(level));
    return list;
}

}  // namespace

std::string renderJson(const Scoreboard& board) {
    const Tally& tally = board.tally;
    OrderedJson document;
    document["schema"] = "rankscope.score/1";
    document["suite"] = board.suite;
    document["links"] = board.links;
    document["worlds"] = board.worlds;
    document["scenarios"] = OrderedJson::array();
    for (const ScenarioScore& score : board.scenarios) document["scenarios"].push_back(scenarioJson(score));
    OrderedJson totals = {{"scenarios", board.scenarios.size()}, {"healthy", tally.healthy}, {"errors", tally.errors}};
    addCounts(totals, tally.total);
    totals["saving_error_median"] = orNull(tally.savingErrorMedian);
    totals["saving_error_worst"] = orNull(tally.savingErrorWorst);
    totals["replay_error_median"] = orNull(tally.replayErrorMedian);
    totals["replay_error_worst"] = orNull(tally.replayErrorWorst);
    totals["promises"] = tally.promises;
    totals["promises_kept"] = tally.promisesKept;
    totals["wall_s"] = std::round(board.wallS * 100) / 100;
    document["totals"] = totals;
    document["by_diagnosis"] = OrderedJson::object();
    for (const auto& [id, diagnosis] : tally.byDiagnosis) {
        OrderedJson entry;
        addCounts(entry, diagnosis.counts);
        entry["detection_limits"] = levelsJson(diagnosis.detectionLimits);
        entry["strengths"] = levelsJson(diagnosis.levels);
        document["by_diagnosis"][id] = entry;
    }
    return document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace rankscope::score
