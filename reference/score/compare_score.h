// SPDX-License-Identifier: Apache-2.0
// The score of `rankscope compare`: pools of noisy runs are made, and pairs of sides drawn from them are compared as a
// user would. It knows scenarios and JSON (rankscope.compare/1), nothing else of the profiler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::score {

struct CompareScoreOptions {
    std::filesystem::path tool;      ///< the `rankscope` binary
    std::filesystem::path builtIns;  ///< folder of the built-in scenarios
    std::filesystem::path plan;      ///< compare_suite.json
    std::filesystem::path keep;  ///< keep pools and comparisons here; empty: in a temporary folder, removed at the end
    std::vector<std::string> only;  ///< sections or causes whose name contains one of these; empty: all
    int pool = 100;                 ///< runs of each pool
    int pairs = 300;                ///< comparisons drawn from each
    int runsASide = 3;
    int causeRuns = 6;  ///< runs of each of the two pools of a cause
    int causePairs = 20;
    int seed = 0;  ///< 0 to kLargestSeed: other runs and other draws
    unsigned jobs = 0;
    int timeoutS = 300;

    static constexpr int kLargestSeed = 1000;
    int runSeed() const { return 1000000 * seed; }  ///< added to the seeds of runs, which stay below 10^6
    uint64_t drawSeed() const { return static_cast<uint64_t>(seed) << 32; }
};

/// Comparisons of one kind.
struct PairTally {
    int pairs = 0;
    std::map<std::string, int> verdicts;
    int covered = 0;           ///< the true ratio is inside the printed interval
    int above = 0;             ///< the true slow-down is above the printed smallest visible change
    int foundAbove = 0;        ///< and is called a regression
    double medianVisible = 0;  ///< printed smallest visible change

    int regressions() const;
    double coveredShare() const { return pairs > 0 ? static_cast<double>(covered) / pairs : 1; }
    double foundShare() const { return above > 0 ? static_cast<double>(foundAbove) / above : 1; }
};

struct SlowdownScore {
    double planted = 0;    ///< share
    double trueRatio = 1;  ///< of the whole pools: geometric means of all their runs
    PairTally tally;
};

struct CauseScore {
    std::string scenario;
    std::vector<std::string> kinds;  ///< any of these is right
    std::vector<int> ranks;          ///< where it was planted; empty: not asked
    int pairs = 0;                   ///< in which a change was claimed
    int unclaimed = 0;               ///< the change was not called a regression: nothing to explain
    int right = 0;
    std::map<std::string, int> named;  ///< first cause of each pair
};

struct CompareScoreboard {
    CompareScoreOptions options;
    PairTally same;     ///< both sides from one pool
    PairTally bimodal;  ///< the same, of jobs whose steps are of two kinds
    std::vector<SlowdownScore> slowdowns;
    std::vector<CauseScore> causes;
    double wallS = 0;

    double falseRegressions() const;  ///< share of the pairs from one pool, the worse of same and bimodal
    double found() const;  ///< share of what was above the printed smallest visible change, the worst slow-down; 1 when
                           ///< nothing was
    double above()
        const;  ///< share of the pairs that found() can judge, the slow-down with most of them; 1 when none was scored
    double covered() const;      ///< share, the worst slow-down
    double causesRight() const;  ///< share of all pairs whose change was claimed; 1 when none was
    double claimed()
        const;  ///< share of the pairs with a planted cause whose change was claimed; 1 when none was scored
};

/// What must be reached.
struct CompareRequirement {
    double falseRegressions = 0.05, found = 0.9, covered = 0.9, causesRight = 0.95;
    // A comparer that promises nothing and claims nothing is never wrong: there must be something to judge. Where the
    // planted slow-down is 5 % or more, two of five pairs and more have been above what was said to be visible; planted
    // causes cost more than that, so nearly every pair is claimed.
    double above = 0.2, claimed = 0.5;
};

/// What the board does not reach, a sentence each; empty: all is reached.
std::vector<std::string> unmet(const CompareScoreboard& board, const CompareRequirement& requirement);

/// `said` gets a line for each finished part. Throws ScoreError. Interrupted as runScore() is.
CompareScoreboard runCompareScore(const CompareScoreOptions& options,
                                  const std::function<void(const std::string&)>& said);

std::string renderText(const CompareScoreboard& board);
std::string renderJson(const CompareScoreboard& board);

}  // namespace rankscope::score
