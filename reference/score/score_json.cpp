// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/score/score.h"

namespace rankscope::score {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json nanoseconds(const std::optional<double>& value) {
    return value ? Json(std::llround(*value)) : Json(nullptr);
}

Json claimsJson(const std::vector<Claim>& claims) {
    Json list = Json::array();
    for (const Claim& claim : claims) {
        Json entry = {{"id", claim.id}};
        if (!claim.ranks.empty()) entry["ranks"] = claim.ranks;
        list.push_back(entry);
    }
    return list;
}

Json scenarioJson(const ScenarioScore& score) {
    Json json;
    json["name"] = score.name;
    json["expected"] = claimsJson(score.expected);
    json["found"] = claimsJson(score.found);
    json["missed"] = claimsJson(score.missed);
    json["false_alarms"] = claimsJson(score.falseAlarms);
    json["wrong_rank"] = claimsJson(score.wrongRank);
    json["predicted_saving_ns"] = nanoseconds(score.predictedSavingNs);
    json["measured_saving_ns"] = nanoseconds(score.measuredSavingNs);
    json["saving_error"] = orNull(score.savingError());
    json["step_ns"] = score.faultyStepNs > 0 ? Json(std::llround(score.faultyStepNs)) : Json(nullptr);
    json["replay_error"] = orNull(score.replayError);
    json["wall_s"] = std::round(score.wallS * 100) / 100;
    json["error"] = score.error.empty() ? Json(nullptr) : Json(score.error);
    return json;
}

void addCounts(Json& json, const Counts& counts) {
    json["true"] = counts.truePositives;
    json["false"] = counts.falseAlarms;
    json["missed"] = counts.missed;
    json["wrong_rank"] = counts.wrongRank;
    json["precision"] = counts.precision();
    json["recall"] = counts.recall();
    json["f1"] = counts.f1();
}

Json levelJson(const StrengthLevel& level) {
    return {{"fault", level.strength.fault},
            {"strength", level.strength.text},
            {"seeds", level.seeds},
            {"found", level.found},
            {"median_cost", level.medianCost}};
}

Json levelsJson(const std::vector<StrengthLevel>& levels) {
    Json list = Json::array();
    for (const StrengthLevel& level : levels) list.push_back(levelJson(level));
    return list;
}

}  // namespace

std::string renderJson(const Scoreboard& board) {
    const Tally& tally = board.tally;
    Json json;
    json["schema"] = "rankscope.score/1";
    json["suite"] = board.suite;
    json["links"] = board.links;
    json["scenarios"] = Json::array();
    for (const ScenarioScore& score : board.scenarios) json["scenarios"].push_back(scenarioJson(score));
    Json totals = {{"scenarios", board.scenarios.size()}, {"healthy", tally.healthy}, {"errors", tally.errors}};
    addCounts(totals, tally.total);
    totals["saving_error_median"] = orNull(tally.savingErrorMedian);
    totals["saving_error_worst"] = orNull(tally.savingErrorWorst);
    totals["replay_error_median"] = orNull(tally.replayErrorMedian);
    totals["replay_error_worst"] = orNull(tally.replayErrorWorst);
    totals["wall_s"] = std::round(board.wallS * 100) / 100;
    json["totals"] = totals;
    json["by_diagnosis"] = Json::object();
    for (const auto& [id, diagnosis] : tally.byDiagnosis) {
        Json entry;
        addCounts(entry, diagnosis.counts);
        entry["detection_limits"] = levelsJson(diagnosis.detectionLimits);
        entry["strengths"] = levelsJson(diagnosis.levels);
        json["by_diagnosis"][id] = entry;
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rankscope::score
