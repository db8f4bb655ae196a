// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/tune/tune_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/job/child_program.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/report/analyze.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/units.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
using recommend::MeasuredCandidate;
using recommend::TuneCandidate;
using Clock = std::chrono::steady_clock;

// A run that takes three times the default's is no candidate any more; half a minute more for a machine that is busy.
constexpr double kLimitFactor = 3, kLimitExtraS = 30;
// The share of the default's steps that a run needs; one with fewer did not do the job's work.
constexpr double kEnoughSteps = 0.8;
constexpr int kMinSteps = 2;

// A run as measured.
struct TunedRun {
    recommend::TuneRun run;
    std::set<std::string> chosen;  // NCCL's algorithm and protocol of each kind of collective
    std::string failure;           // empty: it was measured
};

std::string lastLines(const fs::path& log) {
    std::ifstream file(log);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        if (lines.size() == 5) lines.erase(lines.begin());
        lines.push_back(line.substr(0, 200));
    }
    std::string text;
    for (const std::string& line : lines) text += "\n  | " + line;
    return text;
}

std::string howItEnded(const ProcessEnd& end) {
    return end.signal != 0 ? fmt::format("the job died by signal {}", end.signal)
                           : fmt::format("the job ended with exit status {}", end.status);
}

class Rounds {
  public:
    Rounds(const TunePlan& plan, recommend::TuneResult& result, std::vector<std::string>& notes, const Console& console)
        : m_plan(plan), m_result(result), m_notes(notes), m_console(console) {}

    void measure() {
        probe();
        for (int round = 1; round <= m_plan.rounds; ++round)
            if (!measureRound(round)) return;
    }

  private:
    double elapsedS() const { return std::chrono::duration<double>(Clock::now() - m_begin).count(); }

    double limitS() const {
        if (m_plan.limitS > 0) return m_plan.limitS;
        return m_longestS > 0 ? kLimitFactor * m_longestS + kLimitExtraS : 0;
    }

    // Reads what the run's trace tells.
    TunedRun read(const std::string& name, double wallS) const {
        TunedRun tuned;
        tuned.run.name = name;
        tuned.run.wallS = wallS;
        const fs::path database = m_plan.folder / name / "trace.db";
        if (!fs::exists(database)) {
            tuned.failure = "nothing was recorded";
            return tuned;
        }
        const report::Report report = report::analyze(database);
        std::vector<double> steps;
        for (const auto& step : report.steps)
            if (!step.warmUp) steps.push_back(static_cast<double>(step.durNs));
        tuned.run.steps = static_cast<int>(steps.size());
        if (steps.size() < kMinSteps) {
            tuned.failure = steps.empty() ? "the trace holds no steps" : "the trace holds one step to analyse";
            return tuned;
        }
        tuned.run.stepNs = facts::median(std::move(steps));
        for (const auto& row : report.collectives)
            tuned.chosen.insert(fmt::format("{} {} {} {}: {} {}", row.communicator.value_or(-1), row.op, row.sizeClass,
                                            row.count, row.algorithm, row.protocol));
        return tuned;
    }

    TunedRun runOnce(const std::string& name, const TuneCandidate* candidate, const std::string& tunerFile) {
        const ProcessToStart process{m_plan.command(name, tunerFile), environmentFor(candidate)};
        const fs::path log = m_plan.folder / (name + ".log");
        const TimedEnd end = runTimed(process, log, limitS());
        if (end.interruptedBy != 0) endLike({0, end.interruptedBy});
        TunedRun tuned;
        if (end.overTime)
            tuned.failure = fmt::format("no end within {:.0f} s", limitS());
        else if (end.end.failed())
            tuned.failure = howItEnded(end.end);
        else
            tuned = read(name, end.wallS);
        if (!tuned.failure.empty()) tuned.failure += fmt::format("; its output is in {}", log.string());
        return tuned;
    }

    Environment environmentFor(const TuneCandidate* candidate) const {
        Environment environment = m_plan.environment;
        if (!candidate) return environment;
        for (const auto& [name, value] : candidate->environment) {
            if (value)
                setVariable(environment, name, *value);
            else
                unsetVariable(environment, name);
        }
        return environment;
    }

    void probe() {
        const TunedRun tuned = runOnce("probe", nullptr, {});
        if (!tuned.failure.empty()) refuse(tuned, "probe");
        m_longestS = tuned.run.wallS;
        m_steps = tuned.run.steps;
        m_chosen = tuned.chosen;
        const double expectedS = tuned.run.wallS * m_plan.rounds * static_cast<double>(m_result.candidates.size() + 1);
        m_console.note(fmt::format("step of {} by default; {} rounds of {} settings take about {}",
                                   text::durationText(tuned.run.stepNs), m_plan.rounds, m_result.candidates.size() + 1,
                                   text::durationText(expectedS * 1e9)));
    }

    [[noreturn]] void refuse(const TunedRun& tuned, const std::string& name) const {
        std::string hint = "make the job run by itself first";
        if (tuned.failure.find("step") != std::string::npos)
            hint =
                "a step is an NVTX range that comes again and again, or what repeats on the device: run more of them";
        if (tuned.failure.find("nothing was recorded") != std::string::npos)
            hint = "`rankscope doctor` tells what can be recorded here";
        throw VerbError(kExitInput,
                        fmt::format("the job without any change cannot be measured: {}{}", tuned.failure,
                                    lastLines(m_plan.folder / (name + ".log"))),
                        hint);
    }

    // False: no more rounds.
    bool measureRound(int round) {
        std::vector<int> order = {-1};  // -1: the default
        for (size_t i = 0; i < m_result.candidates.size(); ++i)
            if (m_result.candidates[i].failure.empty() && !m_settled.count(i)) order.push_back(static_cast<int>(i));
        if (order.size() == 1) return false;
        if (m_plan.budgetS > 0 && elapsedS() + m_longestS * static_cast<double>(order.size()) > m_plan.budgetS) {
            m_notes.push_back(fmt::format("The budget of {:g} s is enough for {} of {} rounds.", m_plan.budgetS,
                                          round - 1, m_plan.rounds));
            return false;
        }
        if (round % 2 == 0) std::ranges::reverse(order);
        for (const int which : order)
            if (which < 0 ? !measureDefault(round) : !measureCandidate(round, static_cast<size_t>(which))) return false;
        settle();
        return true;
    }

    TunedRun runInRound(int round, const std::string& name, const TuneCandidate* candidate,
                        const std::string& tunerFile) {
        TunedRun tuned = runOnce(fmt::format("round{}-{}", round, name), candidate, tunerFile);
        if (tuned.failure.empty() && tuned.run.steps < kEnoughSteps * m_steps)
            tuned.failure = fmt::format("{} steps instead of {}", tuned.run.steps, m_steps);
        tuned.run.round = round;
        return tuned;
    }

    bool measureDefault(int round) {
        const TunedRun tuned = runInRound(round, "default", nullptr, {});
        if (!tuned.failure.empty()) {
            if (m_result.standard.size() < 2) refuse(tuned, fmt::format("round{}-default", round));
            m_notes.push_back(fmt::format("The job without any change failed in round {}: {}.", round, tuned.failure));
            return false;
        }
        m_longestS = std::max(m_longestS, tuned.run.wallS);
        m_console.note(fmt::format("round {}: {:<12} default", round, text::durationText(tuned.run.stepNs)));
        m_result.standard.push_back(tuned.run);
        return true;
    }

    bool measureCandidate(int round, size_t index) {
        MeasuredCandidate& measured = m_result.candidates[index];
        std::string tunerFile;
        if (!measured.candidate.tunerRows.empty()) {
            tunerFile = (m_plan.folder / fmt::format("candidate{}.csv", index + 1)).string();
            text::writeOutputFile(recommend::formatTunerCsv(measured.candidate.tunerRows), tunerFile);
        }
        const TunedRun tuned = runInRound(round, fmt::format("candidate{}", index + 1), &measured.candidate, tunerFile);
        if (!tuned.failure.empty()) {
            measured.failure = tuned.failure;
            m_console.warning(
                fmt::format("round {}: {} is dropped: {}", round, measured.candidate.name, tuned.failure));
            return true;
        }
        m_console.note(
            fmt::format("round {}: {:<12} {}", round, text::durationText(tuned.run.stepNs), measured.candidate.name));
        measured.runs.push_back(tuned.run);
        measured.changedNothing = tuned.chosen == m_chosen;
        return true;
    }

    // Drops what is slower for certain: it costs no more time.
    void settle() {
        recommend::judge(m_result);
        for (size_t i = 0; i < m_result.candidates.size(); ++i)
            if (m_result.candidates[i].verdict == recommend::TuneVerdict::slower) m_settled.insert(i);
    }

    const TunePlan& m_plan;
    recommend::TuneResult& m_result;
    std::vector<std::string>& m_notes;
    const Console& m_console;
    const Clock::time_point m_begin = Clock::now();
    double m_longestS = 0;
    int m_steps = 0;
    std::set<std::string> m_chosen;
    std::set<size_t> m_settled;
};

}  // namespace

void measureRounds(const TunePlan& plan, recommend::TuneResult& result, std::vector<std::string>& notes,
                   const Console& console) {
    Rounds(plan, result, notes, console).measure();
    recommend::judge(result);
}

}  // namespace rankscope::cli
