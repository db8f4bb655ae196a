// SPDX-License-Identifier: Apache-2.0
#include "reference/score/compare_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/score/compare_pool.h"
#include "reference/score/score.h"
#include "reference/score/workplace.h"

namespace rankscope::score {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kSameSeed = 1, kBimodalSeed = 2, kSlowSeed = 3, kCauseSeed = 4;  // of the draws
constexpr int kSlowSeeds = 100000;  // of runs: from here on for the first slow-down

Json readJson(const fs::path& file) {
    std::ifstream stream(file);
    Json json = Json::parse(stream, nullptr, false);
    if (!json.is_object()) throw ScoreError(fmt::format("{}: no JSON object", file.string()));
    return json;
}

PairTally tallyOf(const std::vector<PairResult>& results, double trueRatio) {
    PairTally tally;
    std::vector<double> visible;
    for (const PairResult& result : results) {
        ++tally.pairs;
        ++tally.verdicts[result.verdict];
        if (result.interval && result.interval->first <= trueRatio && trueRatio <= result.interval->second)
            ++tally.covered;
        if (!result.visible) continue;
        visible.push_back(*result.visible);
        if (trueRatio - 1 <= *result.visible) continue;
        ++tally.above;
        tally.foundAbove += result.verdict == "regression";
    }
    if (visible.empty()) return tally;
    std::nth_element(visible.begin(), visible.begin() + static_cast<long>(visible.size() / 2), visible.end());
    tally.medianVisible = visible[visible.size() / 2];
    return tally;
}

std::vector<fs::path> chosen(const Pool& pool, const std::vector<int>& members, int from, int count) {
    std::vector<fs::path> files;
    for (int i = from; i < from + count; ++i)
        files.push_back(pool.runs[static_cast<size_t>(members[static_cast<size_t>(i)])]);
    return files;
}

/// Both sides from one pool, without a run on both.
std::vector<PairResult> compareWithin(const CompareBench& bench, const Pool& pool, const CompareScoreOptions& options,
                                      uint64_t seed) {
    return bench.compareAll(pool.name, options.pairs, [&](int pair) {
        const std::vector<int> members =
            drawMembers(seed + options.drawSeed(), pair, static_cast<int>(pool.runs.size()), 2 * options.runsASide);
        return CompareBench::Sides{chosen(pool, members, 0, options.runsASide),
                                   chosen(pool, members, options.runsASide, options.runsASide)};
    });
}

std::vector<PairResult> compareBetween(const CompareBench& bench, const Pool& base, const Pool& now,
                                       const CompareScoreOptions& options, int pairs, uint64_t seed) {
    const int runs = options.runsASide;
    seed += options.drawSeed();
    return bench.compareAll(now.name, pairs, [&](int pair) {
        const std::vector<int> first = drawMembers(seed, 2 * pair, static_cast<int>(base.runs.size()), runs);
        const std::vector<int> second = drawMembers(seed, 2 * pair + 1, static_cast<int>(now.runs.size()), runs);
        return CompareBench::Sides{chosen(base, first, 0, runs), chosen(now, second, 0, runs)};
    });
}

/// Everything takes 1 + slowdown times as long, but the host.
Json slowed(Json scenario, double slowdown) {
    const double factor = 1 + slowdown;
    Json& cluster = scenario.at("cluster");
    for (const char* key : {"tflops", "hbm_gbps"}) cluster[key] = cluster.at(key).get<double>() / factor;
    for (const char* link : {"intra", "inter"}) {
        if (!cluster.contains(link)) continue;
        cluster[link]["alpha_us"] = cluster[link].at("alpha_us").get<double>() * factor;
        cluster[link]["gbps"] = cluster[link].at("gbps").get<double>() / factor;
    }
    return scenario;
}

CauseScore scoreCause(const CompareBench& bench, const Json& entry, const Json& noise,
                      const CompareScoreOptions& options) {
    CauseScore score;
    const std::string scenarioName = entry.at("scenario");
    score.scenario = scenarioName + (entry.contains("change") ? " " + entry.at("name").get<std::string>() : "");
    score.kinds = entry.at("kinds").get<std::vector<std::string>>();
    if (entry.contains("ranks")) score.ranks = entry.at("ranks").get<std::vector<int>>();
    Json scenario = readJson(options.builtIns / (scenarioName + ".json"));
    scenario.update(noise);
    const Pool base =
        bench.makePool(score.scenario + "-base", scenario, options.causeRuns, 1001, !entry.contains("change"));
    if (entry.contains("change")) scenario.merge_patch(entry.at("change"));
    const Pool now = bench.makePool(score.scenario, scenario, options.causeRuns, 2001);
    for (const PairResult& result : compareBetween(bench, base, now, options, options.causePairs, kCauseSeed)) {
        if (result.verdict != "regression") {
            ++score.unclaimed;
            continue;
        }
        ++score.pairs;
        ++score.named[result.cause.empty() ? "none" : result.cause];
        const bool kind = std::find(score.kinds.begin(), score.kinds.end(), result.cause) != score.kinds.end();
        score.right += kind && (score.ranks.empty() || score.ranks == result.causeRanks);
    }
    return score;
}

void scoreNoise(const CompareBench& bench, const Json& plan, const CompareScoreOptions& options,
                CompareScoreboard& board, const std::function<void(const std::string&)>& said) {
    const Json job = plan.at("job");
    const auto nameOf = [](double slowdown) { return fmt::format("slower-{:g}", 100 * slowdown); };
    const std::vector<double> slowdowns = plan.at("slowdowns");
    const bool isSame = isWanted("same", options.only);
    if (!isSame && std::none_of(slowdowns.begin(), slowdowns.end(),
                                [&](double slowdown) { return isWanted(nameOf(slowdown), options.only); }))
        return;
    const Pool pool = bench.makePool("same", job, options.pool, 1);
    if (isSame) {
        board.same = tallyOf(compareWithin(bench, pool, options, kSameSeed), 1);
        said(fmt::format("same: {} of {} pairs called a regression", board.same.regressions(), board.same.pairs));
    }
    int ordinal = 0;
    for (const double slowdown : slowdowns) {
        const int firstSeed = kSlowSeeds * ++ordinal;  // each slow-down has runs, and pairs, of its own
        const std::string name = nameOf(slowdown);
        if (!isWanted(name, options.only)) continue;
        const Pool slow = bench.makePool(name, slowed(job, slowdown), options.pool, firstSeed);
        SlowdownScore score;
        score.planted = slowdown;
        score.trueRatio =
            bench.compareAll(name + "-all", 1,
                             [&](int) {
                                 return CompareBench::Sides{pool.runs, slow.runs};
                             })
                .front()
                .ratio;
        score.tally = tallyOf(
            compareBetween(bench, pool, slow, options, options.pairs, kSlowSeed + static_cast<uint64_t>(firstSeed)),
            score.trueRatio);
        said(fmt::format("{}: {} of {} above the smallest visible change found", name, score.tally.foundAbove,
                         score.tally.above));
        board.slowdowns.push_back(std::move(score));
    }
}

/// Steps of two kinds, with another share of slow ones in each run.
void scoreBimodal(const CompareBench& bench, const Json& plan, const CompareScoreOptions& options,
                  CompareScoreboard& board) {
    Json job = plan.at("job");
    job.update(plan.at("bimodal").at("job"), true);
    const std::vector<double> shares = plan.at("bimodal").at("shares").get<std::vector<double>>();
    const double ms = plan.at("bimodal").at("ms");
    const Pool pool = bench.makePool("bimodal", job, options.pool, 50001, false, [&](Json& scenario, int seed) {
        scenario["faults"] =
            Json::array({{{"kind", "jitter"},
                          {"share", shares[static_cast<size_t>(
                                        drawMembers(kBimodalSeed, seed, static_cast<int>(shares.size()), 1).front())]},
                          {"ms", ms}}});
    });
    board.bimodal = tallyOf(compareWithin(bench, pool, options, kBimodalSeed), 1);
}

}  // namespace

int PairTally::regressions() const {
    const auto count = verdicts.find("regression");
    return count == verdicts.end() ? 0 : count->second;
}

double CompareScoreboard::falseRegressions() const {
    const auto share = [](const PairTally& tally) {
        return tally.pairs > 0 ? static_cast<double>(tally.regressions()) / tally.pairs : 0;
    };
    return std::max(share(same), share(bimodal));
}

double CompareScoreboard::found() const {
    double worst = 1;
    for (const SlowdownScore& score : slowdowns) worst = std::min(worst, score.tally.foundShare());
    return worst;
}

double CompareScoreboard::covered() const {
    double worst = 1;
    for (const SlowdownScore& score : slowdowns) worst = std::min(worst, score.tally.coveredShare());
    return worst;
}

double CompareScoreboard::causesRight() const {
    int pairs = 0, right = 0;
    for (const CauseScore& cause : causes) {
        pairs += cause.pairs;
        right += cause.right;
    }
    return pairs > 0 ? static_cast<double>(right) / pairs : 1;
}

double CompareScoreboard::above() const {
    double most = slowdowns.empty() ? 1 : 0;
    for (const SlowdownScore& score : slowdowns)
        most = std::max(most, score.tally.pairs > 0 ? static_cast<double>(score.tally.above) / score.tally.pairs : 0);
    return most;
}

double CompareScoreboard::claimed() const {
    int pairs = 0, all = 0;
    for (const CauseScore& cause : causes) {
        pairs += cause.pairs;
        all += cause.pairs + cause.unclaimed;
    }
    return all > 0 ? static_cast<double>(pairs) / all : causes.empty() ? 1 : 0;
}

std::vector<std::string> unmet(const CompareScoreboard& board, const CompareRequirement& requirement) {
    std::vector<std::string> reasons;
    const auto atLeast = [&](double share, double wanted, const char* what) {
        if (share < wanted)
            reasons.push_back(fmt::format("{}: {:.1f} %, asked are {:.0f} % or more", what, 100 * share, 100 * wanted));
    };
    if (board.falseRegressions() > requirement.falseRegressions)
        reasons.push_back(fmt::format("false regressions: {:.1f} %, asked are {:.0f} % or less",
                                      100 * board.falseRegressions(), 100 * requirement.falseRegressions));
    atLeast(board.above(), requirement.above, "too little to judge: pairs above the printed smallest visible change");
    atLeast(board.found(), requirement.found, "found above the printed smallest visible change");
    atLeast(board.covered(), requirement.covered, "true ratios inside the interval");
    atLeast(board.claimed(), requirement.claimed,
            "too little to judge: pairs with a planted cause that are called a regression");
    atLeast(board.causesRight(), requirement.causesRight, "first causes that are right");
    return reasons;
}

CompareScoreboard runCompareScore(const CompareScoreOptions& options,
                                  const std::function<void(const std::string&)>& said) {
    if (options.pool < 2 * options.runsASide)
        throw ScoreError(fmt::format("a pool of {} runs has no two sides of {}", options.pool, options.runsASide));
    if (options.causeRuns < options.runsASide)
        throw ScoreError(fmt::format("{} runs of a cause are no side of {}", options.causeRuns, options.runsASide));
    const auto begin = std::chrono::steady_clock::now();
    const Json plan = readJson(options.plan);
    const StopOnSignals signals;
    const Workplace workplace(options.keep);
    const CompareBench bench(options, workplace.folder());
    CompareScoreboard board;
    board.options = options;
    scoreNoise(bench, plan, options, board, said);
    if (isWanted("bimodal", options.only)) {
        scoreBimodal(bench, plan, options, board);
        said(fmt::format("bimodal: {} of {} pairs called a regression", board.bimodal.regressions(),
                         board.bimodal.pairs));
    }
    for (const Json& entry : plan.at("causes")) {
        if (!isWanted(entry.at("scenario"), options.only) && !isWanted(entry.value("name", ""), options.only)) continue;
        board.causes.push_back(scoreCause(bench, entry, plan.at("cause_noise"), options));
        const CauseScore& score = board.causes.back();
        said(fmt::format("{}: {} of {} causes right", score.scenario, score.right, score.pairs));
    }
    if (board.same.pairs + board.bimodal.pairs == 0 && board.slowdowns.empty() && board.causes.empty())
        throw ScoreError("--only names no part of the suite compare");
    board.wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return board;
}

}  // namespace rankscope::score
