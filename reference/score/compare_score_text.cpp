// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reference/score/compare_score.h"

namespace rankscope::score {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string countsText(const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [name, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
    return text;
}

OrderedJson tallyJson(const PairTally& tally) {
    return {{"pairs", tally.pairs},         {"verdicts", tally.verdicts}, {"covered", tally.covered},
            {"above_visible", tally.above}, {"found", tally.foundAbove},  {"median_visible", tally.medianVisible}};
}

}  // namespace

std::string renderText(const CompareScoreboard& board) {
    const CompareScoreOptions& options = board.options;
    std::string text = fmt::format("compare: pools of {} runs, {} against {}, {:.0f} s\n\n", options.pool,
                                   options.runsASide, options.runsASide, board.wallS);
    const auto pairs = [&](const char* name, const PairTally& tally) {
        if (tally.pairs > 0)
            text += fmt::format("{:<24} {} pairs: {}; smallest visible change {:.1f} % in the median\n", name,
                                tally.pairs, countsText(tally.verdicts), 100 * tally.medianVisible);
    };
    pairs("nothing changed", board.same);
    pairs("nothing changed, bimodal", board.bimodal);
    if (!board.slowdowns.empty()) text += "\nslower   measured   above visible   found   inside interval   verdicts\n";
    for (const SlowdownScore& score : board.slowdowns)
        text += fmt::format("{:>4.0f} %   {:>6.2f} %   {:>13}   {:>7}   {:>13.1f} %   {}\n", 100 * score.planted,
                            100 * (score.trueRatio - 1), score.tally.above,
                            score.tally.above > 0 ? fmt::format("{:.1f} %", 100 * score.tally.foundShare()) : "-",
                            100 * score.tally.coveredShare(), countsText(score.tally.verdicts));
    if (!board.causes.empty()) text += "\ncause planted                            pairs   right   named first\n";
    for (const CauseScore& score : board.causes)
        text += fmt::format(
            "{:<40} {:>5}   {:>5}   {}{}\n", score.scenario, score.pairs, score.right, countsText(score.named),
            score.unclaimed > 0 ? fmt::format(" ({} pairs without a regression)", score.unclaimed) : "");
    std::vector<std::string> totals;  // of what was scored
    const auto total = [&](bool isScored, const char* name, double share) {
        totals.push_back(isScored ? fmt::format("{} {:.1f} %", name, 100 * share) : fmt::format("{} -", name));
    };
    total(board.same.pairs + board.bimodal.pairs > 0, "false regressions", board.falseRegressions());
    total(board.above() > 0 && !board.slowdowns.empty(), "found", board.found());
    total(!board.slowdowns.empty(), "inside the interval", board.covered());
    total(!board.causes.empty(), "causes right", board.causesRight());
    return text + fmt::format("\n{}\n", fmt::join(totals, ", "));
}

std::string renderJson(const CompareScoreboard& board) {
    OrderedJson json;
    json["schema"] = "rankscope.score_compare/1";
    json["suite"] = "compare";
    json["pool"] = board.options.pool;
    json["runs_a_side"] = board.options.runsASide;
    json["same"] = tallyJson(board.same);
    json["bimodal"] = tallyJson(board.bimodal);
    json["slowdowns"] = OrderedJson::array();
    for (const SlowdownScore& score : board.slowdowns) {
        OrderedJson row{{"planted", score.planted}, {"true_ratio", score.trueRatio}};
        row.update(tallyJson(score.tally));
        json["slowdowns"].push_back(row);
    }
    json["causes"] = OrderedJson::array();
    for (const CauseScore& score : board.causes)
        json["causes"].push_back({{"scenario", score.scenario},
                                  {"kinds", score.kinds},
                                  {"ranks", score.ranks},
                                  {"pairs", score.pairs},
                                  {"unclaimed", score.unclaimed},
                                  {"right", score.right},
                                  {"named", score.named}});
    json["totals"] = {{"false_regressions", board.falseRegressions()},
                      {"found", board.found()},
                      {"above", board.above()},
                      {"covered", board.covered()},
                      {"claimed", board.claimed()},
                      {"causes_right", board.causesRight()}};
    json["wall_s"] = board.wallS;
    return json.dump(2) + "\n";
}

}  // namespace rankscope::score
