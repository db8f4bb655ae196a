// SPDX-License-Identifier: Apache-2.0
#include "reference/score/compare_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <numeric>
#include <thread>

#include "reference/score/command.h"
#include "reference/score/score.h"
#include "reference/score/workplace.h"

namespace rankscope::score {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;  // splitmix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

PairResult readComparison(const fs::path& file) {
    std::ifstream stream(file);
    const Json json = Json::parse(stream, nullptr, false);
    if (!json.is_object() || json.value("schema", "") != "rankscope.compare/1")
        throw ScoreError(fmt::format("{}: no rankscope.compare/1", file.string()));
    const Json& step = json.at("step_time");
    PairResult result;
    result.verdict = step.at("verdict");
    if (step.at("ratio").is_number()) result.ratio = step.at("ratio");
    if (step.at("interval").is_array()) result.interval = {step.at("interval").at(0), step.at("interval").at(1)};
    if (step.at("smallest_visible").is_number()) result.visible = step.at("smallest_visible").get<double>();
    if (!json.at("causes").empty()) {
        result.cause = json.at("causes").at(0).at("kind");
        result.causeRanks = json.at("causes").at(0).at("ranks").get<std::vector<int>>();
    }
    return result;
}

}  // namespace

std::vector<int> drawMembers(uint64_t seed, int pair, int of, int count) {
    std::vector<int> members(static_cast<size_t>(of));
    std::iota(members.begin(), members.end(), 0);
    uint64_t state = mixed(seed ^ mixed(static_cast<uint64_t>(pair)));
    for (int i = 0; i < count; ++i) {
        state = mixed(state);
        std::swap(members[static_cast<size_t>(i)],
                  members[static_cast<size_t>(i) + state % static_cast<uint64_t>(of - i)]);
    }
    members.resize(static_cast<size_t>(count));
    return members;
}

void CompareBench::forEach(int count, const std::function<void(int)>& work) const {
    const unsigned jobs = m_options.jobs ? m_options.jobs : std::max(1u, std::thread::hardware_concurrency());
    std::atomic<int> next{0};
    std::mutex mutex;  // guards `problem`
    std::string problem;
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < jobs; ++i)
            threads.emplace_back([&] {
                for (int k = next++; k < count && !stopRequested; k = next++) {
                    try {
                        work(k);
                    } catch (const std::exception& error) {
                        const std::lock_guard lock(mutex);
                        problem = error.what();
                        next = count;
                    }
                }
            });
    }
    if (stopRequested) throw ScoreError("interrupted");
    if (!problem.empty()) throw ScoreError(problem);
}

fs::path CompareBench::runOnce(const fs::path& folder, const Json& scenario, int seed, bool fixed) const {
    const std::string name = fmt::format("run{}", seed);
    const fs::path file = folder / (name + ".json"), run = folder / name, summaries = folder / "summaries" / name;
    std::ofstream(file) << scenario;
    const auto must = [&](const std::vector<std::string>& words, const char* what) {
        const CommandEnd end = runCommand(words, folder / (name + ".log"), m_options.timeoutS, stopRequested);
        if (end.status != 0 && !stopRequested)
            throw ScoreError(fmt::format("{}, seed {}: {} failed with status {}: {}", folder.filename().string(), seed,
                                         what, end.status, end.messages));
    };
    std::vector<std::string> words = {m_options.tool, "-q", "reference", "run", file, "--force", "-o", run};
    if (fixed) words.push_back("--fixed");
    must(words, "the run");
    must({m_options.tool, "-q", "baseline", "save", run, "--dir", summaries, "--workers", "1"}, "saving it");
    std::error_code ignored;
    if (m_options.keep.empty()) fs::remove_all(run, ignored);
    for (const auto& entry : fs::directory_iterator(summaries)) return entry.path();
    throw ScoreError(fmt::format("{}, seed {}: no summary was saved", folder.filename().string(), seed));
}

Pool CompareBench::makePool(const std::string& name, const Json& scenario, int runs, int firstSeed, bool fixed,
                            const std::function<void(Json&, int)>& vary) const {
    Pool pool{name, std::vector<fs::path>(static_cast<size_t>(runs))};
    const fs::path folder = m_folder / name;
    fs::create_directories(folder);
    firstSeed += m_options.runSeed();
    forEach(runs, [&](int i) {
        Json one = scenario;
        one["seed"] = firstSeed + i;
        if (vary) vary(one, firstSeed + i);
        pool.runs[static_cast<size_t>(i)] = runOnce(folder, one, firstSeed + i, fixed);
    });
    return pool;
}

PairResult CompareBench::compareOnce(const fs::path& file, const Sides& sides) const {
    std::vector<std::string> words = {m_options.tool, "-q",   "compare", "--fail-on", "never",
                                      "--format",     "json", "-o",      file,        "--base"};
    words.insert(words.end(), sides.first.begin(), sides.first.end());
    words.push_back("--new");
    words.insert(words.end(), sides.second.begin(), sides.second.end());
    const CommandEnd end = runCommand(words, file.string() + ".log", m_options.timeoutS, stopRequested);
    if (end.status != 0 && !stopRequested)
        throw ScoreError(
            fmt::format("{}: comparing failed with status {}: {}", file.string(), end.status, end.messages));
    PairResult result = readComparison(file);
    std::error_code ignored;
    if (m_options.keep.empty()) fs::remove(file, ignored);
    return result;
}

std::vector<PairResult> CompareBench::compareAll(const std::string& name, int pairs,
                                                 const std::function<Sides(int)>& sidesOf) const {
    const fs::path folder = m_folder / ("pairs-" + name);
    fs::create_directories(folder);
    std::vector<PairResult> results(static_cast<size_t>(pairs));
    forEach(pairs, [&](int pair) {
        results[static_cast<size_t>(pair)] = compareOnce(folder / fmt::format("{}.json", pair), sidesOf(pair));
    });
    return results;
}

}  // namespace rankscope::score
