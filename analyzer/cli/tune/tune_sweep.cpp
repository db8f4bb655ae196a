// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/tune/tune_sweep.h"

#include <fmt/format.h>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/job/child_program.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/recommend/collective_sweep.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kTimes = 22;  // the first two of a kind do not count
constexpr size_t kMaxSizes = 12;
constexpr double kMinGainShare = 0.02;
constexpr double kSweepLimitFactor = 10, kSweepLimitExtraS = 60;  // some choices are far slower by nature

fs::path collectivesProgram() {
    const fs::path program = findInstallLayout().workload.parent_path() / "rankscope-collectives";
    if (!fs::exists(program))
        throw VerbError(kExitInput, fmt::format("{} is missing", program.string()),
                        "build with the CUDA compiler present (./bootstrap.sh build)");
    return program;
}

}  // namespace

void sweepCollectives(const SweepRequest& request, const Console& console) {
    const std::string program = collectivesProgram().string();
    const RunInput input = findRun(request.trace);
    collectOnDemand(input, console);
    const recommend::SweepPlan plan = recommend::planSweep(input.database, kTimes, kMaxSizes);
    fs::create_directories(request.folder);
    const std::string planFile = fs::absolute(request.folder / "plan.txt").string();
    text::writeOutputFile(plan.text, planFile);
    for (const std::string& what : plan.leftOut) console.note(fmt::format("left out: {}", what));

    double limitS = request.limitS;
    const auto measure = [&](const std::string& name, const std::string& tunerFile,
                             recommend::SweptTimes& times) -> std::string {
        const fs::path run = request.folder / ("sweep-" + name), log = request.folder / ("sweep-" + name + ".log");
        const TimedEnd end =
            runTimed({request.command(run, tunerFile, {program, planFile}), request.environment}, log, limitS);
        if (end.interruptedBy != 0) endLike({0, end.interruptedBy});
        if (end.overTime) return fmt::format("no end within {:.0f} s; its output is in {}", limitS, log.string());
        if (end.end.failed()) return fmt::format("it failed; its output is in {}", log.string());
        if (request.limitS <= 0 && name == "default") limitS = kSweepLimitFactor * end.wallS + kSweepLimitExtraS;
        if (!fs::exists(run / "trace.db")) return "nothing was recorded";
        recommend::addSweptTimes(run / "trace.db", times);
        return {};
    };
    recommend::SweptTimes standard;
    if (const std::string failure = measure("default", "", standard); !failure.empty() || standard.empty())
        throw VerbError(
            kExitInput,
            fmt::format("the collectives cannot be measured: {}",
                        failure.empty() ? "the trace does not tell the algorithms that NCCL used" : failure),
            fmt::format("the plan is for {} ranks; algorithms are told by NCCL 2.26 and newer", plan.worldSize));
    console.note(fmt::format("{} kinds of collectives by default", standard.size()));
    recommend::SweptTimes all = standard;
    for (const auto& setting : recommend::sweepSettings()) {
        const std::string tunerFile = (request.folder / ("sweep-" + setting.name + ".csv")).string();
        text::writeOutputFile(recommend::formatTunerCsv(setting.rows), tunerFile);
        const std::string failure = measure(setting.name, tunerFile, all);
        if (failure.empty())
            console.note(setting.name);
        else
            console.warning(fmt::format("{} is left out: {}", setting.name, failure));
    }
    const auto choices = recommend::chooseFromSweep(standard, all, kMinGainShare);
    const auto rows = recommend::rowsFromSweep(choices);
    console.result(request.json ? recommend::renderSweepJson(choices, rows) : recommend::renderSweepText(choices));
    if (rows.empty()) {
        if (!request.json) console.result("Keep the default: nothing beats it by more than its noise.\n");
        return;
    }
    const std::string file = (request.folder / "sweep.csv").string();
    text::writeOutputFile(recommend::formatTunerCsv(rows), file);
    if (!request.json)
        console.result(
            fmt::format("{} holds what was faster. A collective by itself is not the job: measure it there.\n", file));
    console.next(fmt::format("rankscope tune --tuner {} -- JOB", text::shellWord(file)));
}

}  // namespace rankscope::cli
