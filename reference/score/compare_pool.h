// SPDX-License-Identifier: Apache-2.0
// Pools of runs of one job, which differ by their seed alone, and comparisons of runs drawn from them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reference/score/compare_score.h"

namespace rankscope::score {

/// Summaries (`rankscope baseline save`), one per run.
struct Pool {
    std::string name;
    std::vector<std::filesystem::path> runs;
};

/// What the score reads of a comparison (rankscope.compare/1).
struct PairResult {
    std::string verdict;
    double ratio = 0;
    std::optional<std::pair<double, double>> interval;
    std::optional<double> visible;
    std::string cause;  ///< kind of the first one; empty: none
    std::vector<int> causeRanks;
};

class CompareBench {
  public:
    CompareBench(const CompareScoreOptions& options, std::filesystem::path folder)
        : m_options(options), m_folder(std::move(folder)) {}

    /// Runs the scenario with seeds firstSeed, firstSeed + 1, ...; `vary` may change more of it for each run. Throws
    /// ScoreError when one fails.
    Pool makePool(const std::string& name, const nlohmann::json& scenario, int runs, int firstSeed, bool fixed = false,
                  const std::function<void(nlohmann::json&, int seed)>& vary = {}) const;

    /// Compares pair after pair, in parallel; `sidesOf` says which files stand on each side of pair i.
    using Sides = std::pair<std::vector<std::filesystem::path>, std::vector<std::filesystem::path>>;
    std::vector<PairResult> compareAll(const std::string& name, int pairs,
                                       const std::function<Sides(int pair)>& sidesOf) const;

  private:
    std::filesystem::path runOnce(const std::filesystem::path& folder, const nlohmann::json& scenario, int seed,
                                  bool fixed) const;
    PairResult compareOnce(const std::filesystem::path& file, const Sides& sides) const;
    void forEach(int count, const std::function<void(int)>& work) const;

    const CompareScoreOptions& m_options;
    std::filesystem::path m_folder;
};

/// `count` different members of [0, of), the same for the same pair: a seeded shuffle.
std::vector<int> drawMembers(uint64_t seed, int pair, int of, int count);

}  // namespace rankscope::score
