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

OrderedJson scenarioJson(const ScenarioScore& score) {
    OrderedJson json;
    json["name"] = score.name;
    json["expected"] = claimsJson(score.expected);
    json["found"] = claimsJson(score.found);
    json["missed"] = claimsJson(score.missed);
    json["false_alarms"] = claimsJson(score.falseAlarms);
    json["wrong_rank"] = claimsJson(score.wrongRank);
    json["of_the_world"] = claimsJson(score.ofTheWorld);
    json["predicted_saving_ns"] = nanoseconds(score.predictedSavingNs);
    json["measured_saving_ns"] = nanoseconds(score.measuredSavingNs);
    json["saving_error"] = orNull(score.savingError());
    json["step_ns"] = score.faultyStepNs > 0 ? OrderedJson(std::llround(score.faultyStepNs)) : OrderedJson(nullptr);
    json["replay_error"] = orNull(score.replayError);
    json["wall_s"] = std::round(score.wallS * 100) / 100;
    json["error"] = score.error.empty() ? OrderedJson(nullptr) : OrderedJson(score.error);
    return json;
}

void addCounts(OrderedJson& json, const Counts& counts) {
    json["true"] = counts.truePositives;
    json["false"] = counts.falseAlarms;
    json["missed"] = counts.missed;
    json["wrong_rank"] = counts.wrongRank;
    json["precision"] = counts.precision();
    json["recall"] = counts.recall();
    json["f1"] = counts.f1();
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
    OrderedJson json;
    json["schema"] = "rankscope.score/1";
    json["suite"] = board.suite;
    json["links"] = board.links;
    json["worlds"] = board.worlds;
    json["scenarios"] = OrderedJson::array();
    for (const ScenarioScore& score : board.scenarios) json["scenarios"].push_back(scenarioJson(score));
    OrderedJson totals = {{"scenarios", board.scenarios.size()}, {"healthy", tally.healthy}, {"errors", tally.errors}};
    addCounts(totals, tally.total);
    totals["saving_error_median"] = orNull(tally.savingErrorMedian);
    totals["saving_error_worst"] = orNull(tally.savingErrorWorst);
    totals["replay_error_median"] = orNull(tally.replayErrorMedian);
    totals["replay_error_worst"] = orNull(tally.replayErrorWorst);
    totals["wall_s"] = std::round(board.wallS * 100) / 100;
    json["totals"] = totals;
    json["by_diagnosis"] = OrderedJson::object();
    for (const auto& [id, diagnosis] : tally.byDiagnosis) {
        OrderedJson entry;
        addCounts(entry, diagnosis.counts);
        entry["detection_limits"] = levelsJson(diagnosis.detectionLimits);
        entry["strengths"] = levelsJson(diagnosis.levels);
        json["by_diagnosis"][id] = entry;
    }
    return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace rankscope::score
