// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "analyzer/compare/baseline_entries.h"
#include "analyzer/compare/changes.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/odd_runs.h"
#include "analyzer/compare/per_sample.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/side_means.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

/// Drops runs without steps and runs that are there already. Returns the names of the others by summaryId().
std::map<std::string, std::string> clean(std::vector<RunSummary>& runs, const std::string& side,
                                         std::vector<std::string>& notes) {
    std::map<std::string, std::string> seen;  // name by summaryId()
    std::vector<RunSummary> kept;
    std::string without;
    for (RunSummary& run : runs) {
        if (run.stepsNs.empty()) {
            notes.push_back(fmt::format("{} has no steps after warm-up and is left out", run.name));
            without = run.name;
            continue;
        }
        const auto [at, isNew] = seen.try_emplace(summaryId(run), run.name);
        if (!isNew) {
            notes.push_back(
                at->second == run.name
                    ? fmt::format("{} is on the {} side twice: it counts once", run.name, side)
                    : fmt::format("{} and {} on the {} side are the same run, to the nanosecond: it counts once",
                                  at->second, run.name, side));
            continue;
        }
        if (run.steps == 1) notes.push_back(fmt::format("{} has one step only", run.name));
        kept.push_back(std::move(run));
    }
    if (kept.empty() && !runs.empty())
        throw CompareError(fmt::format("no run of the {} side has a step to compare: {}", side, without),
                           "mark steps with an NVTX range or torch.profiler's step(), run at least three of them, and "
                           "see `rankscope analyze` for what was recorded");
    runs = std::move(kept);
    return seen;
}

ComparedSide comparedSide(const std::vector<RunSummary>& runs) {
    ComparedSide side;
    for (const RunSummary& run : runs) {
        side.runs.push_back(run);
        for (const std::string& host : run.hosts)
            if (!text::contains(side.hosts, host)) side.hosts.push_back(host);
    }
    if (runs.empty()) return side;
    side.environment = runs.front().environment;
    side.layout = side.environment["layout"];
    return side;
}

/// Lets one run stand for the side: of those with their trace at hand the one whose step is the most typical.
void setOverview(std::vector<RunSummary>& runs, ComparedSide& side) {
    double sum = 0;
    for (const ComparedRun& run : side.runs) sum += run.stepNs;
    const double middle = side.runs.empty() ? 0 : sum / static_cast<double>(side.runs.size());
    std::optional<size_t> best;
    for (size_t i = 0; i < runs.size(); ++i)
        if (runs[i].overview &&
            (!best || std::abs(side.runs[i].stepNs - middle) < std::abs(side.runs[*best].stepNs - middle)))
            best = i;
    if (!best) return;
    side.overview = std::move(runs[*best].overview);
    side.overviewRun = runs[*best].name;
}

void addLosses(const std::vector<RunSummary>& runs, const char* side, Comparison& comparison) {
    for (const RunSummary& run : runs)
        for (const report::LossRow& loss : run.losses)
            comparison.losses.push_back({side, run.name, loss.kind, loss.severity, loss.count, loss.meaning});
}

/// A change worth explaining: claimed, or large enough to be claimed if noise were less.
bool worthExplaining(const StepTimeChange& step) {
    if (step.isClaim()) return true;
    return step.verdict == StepVerdict::notEnoughSamples && step.ratio &&
           std::abs(std::log(*step.ratio)) >= std::log1p(step.threshold);
}

/// What runs differ by, where something tells it that one odd run of a side does not move.
double usualNoise(const std::vector<RunSummary>& base, const EarlierNoise& earlier) {
    constexpr double kFewestToTell = 4;  // with fewer the noise may well be half of what it is
    std::vector<double> logs = logsOf(base);
    if (earlier.degrees >= kFewestToTell)
        return std::max(kNoiseFloor, std::sqrt(earlier.squares / (earlier.degrees - 2)));
    return noiseDespiteOddRuns({logs});
}

/// Takes the odd runs out of a side and tells them.
std::vector<RunSummary> withoutOddRuns(const std::vector<RunSummary>& runs, const char* side, double noise,
                                       std::vector<OddRun>& odd) {
    std::vector<const RunSummary*> all;
    for (const RunSummary& run : runs) all.push_back(&run);
    const std::vector<size_t> at = oddOnes(all, logsOf(runs), noise);
    std::vector<RunSummary> kept;
    std::vector<const RunSummary*> others;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (text::contains(at, i)) continue;
        kept.push_back(runs[i]);
        others.push_back(&runs[i]);
    }
    for (const size_t i : at) odd.push_back(describeOddRun(runs[i], others, side));
    return kept;
}

/// A run that is not like the others of its side may be one of the machines. What only holds with it is not claimed,
/// and what holds without it is.
void judgeOddRuns(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                  const StepTimeOptions& options, Comparison& result) {
    const double noise = usualNoise(base, options.earlier);
    const auto usualBase = withoutOddRuns(base, "base", noise, result.oddRuns),
               usualNew = withoutOddRuns(now, "new", noise, result.oddRuns);
    if (result.oddRuns.empty()) return;
    result.withoutOdd =
        compareStepTimes({usualBase.begin(), usualBase.end()}, {usualNew.begin(), usualNew.end()}, options);
    result.withoutOdd->samples = result.step.samples;
    result.withoutOdd->reason = verdictSentence(*result.withoutOdd);
    const bool isSlowNew =
        std::ranges::any_of(result.oddRuns, [](const OddRun& odd) { return odd.side == "new" && odd.ratio > 1; });
    if (isSlowNew && result.withoutOdd->verdict != StepVerdict::regression) {
        // What would be seen all the same is.
        if (result.step.verdict != StepVerdict::noChange && result.step.verdict != StepVerdict::improvement)
            result.step.verdict = StepVerdict::undecided;
    } else {
        result.step = *result.withoutOdd;
    }
}

void compareSteps(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                  const Comparability& comparability, const StepTimeOptions& options, Comparison& result) {
    if (!comparability.mixed.empty()) {
        result.step.reason = "incomparable: " + comparability.mixed;
    } else if (comparability.stepTimeRefused) {
        std::string why;
        for (const Incomparable& row : result.incomparable)
            if (row.refused)
                why += fmt::format("{}{} ({} and {})", why.empty() ? "" : ", ", row.what, row.base, row.now);
        result.step.reason = "incomparable: the two sides differ in " + why;
    } else {
        const double samples = result.step.samples;
        result.step = compareStepTimes(result.base.runs, result.now.runs, options);
        result.step.samples = samples;
        judgeOddRuns(base, now, options, result);
        result.step.reason =
            result.step.verdict == StepVerdict::undecided ? undecidedSentence(result) : verdictSentence(result.step);
        if (result.step.fewForExceptions && result.step.isClaim())
            result.notes.push_back(
                "so few runs tell the change from noise, not from a run of another kind (another node, another clock): "
                "three on each side would");
        if (result.step.verdict != StepVerdict::undecided)
            for (const OddRun& odd : result.oddRuns) result.notes.push_back(oddRunNote(odd));
    }
    for (ComparedSide* side : {&result.base, &result.now}) setTypicalSteps(result.step.estimator, side->runs);
}

/// Says what is known of how many samples the steps of both sides work on.
void addSamples(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now, const CompareOptions& options,
                Comparison& result) {
    constexpr double kOther = 0.02;  // bytes of one batch are the same to the byte but for what is sent once a step
    if (options.samples != 1) {
        result.notes.push_back(
            fmt::format("a new step works on {:.4g} times the {}s of a base step: times of the new side are divided by "
                        "that, for as "
                        "many {}s",
                        options.samples, options.sample, options.sample));
        return;
    }
    const std::optional<double> samples = samplesByPipeline(base, now);
    if (!samples) return;
    if (std::abs(*samples - 1) < kOther)
        result.notes.push_back(
            "the schedules differ and the stages send each other as much a step: the batch is probably the same");
    else
        result.notes.push_back(
            fmt::format("the stages send each other {:.3g} times as much a step, so the batch is probably that much "
                        "{}: `--per sample={:.3g}` compares the time per sample",
                        *samples, *samples > 1 ? "larger" : "smaller", *samples));
}

void judge(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now, const GateOptions& options,
           Comparison& result) {
    result.gate = judgeGate(result, options);
    for (const auto& notices : {unfinishedNotices(now, "new"), unfinishedNotices(base, "base")})
        result.gate.notices.insert(result.gate.notices.end(), notices.begin(), notices.end());
}

Comparison withoutBase(const std::vector<RunSummary>& now, const CompareOptions& options, Comparison result) {
    result.step.verdict = StepVerdict::noBaseline;
    result.step.reason = "there is no baseline: nothing to compare with";
    result.step.noiseSource = "none";
    setTypicalSteps(result.step.estimator, result.now.runs);
    const SideMeans means = meansOf(now);
    result.findings = compareFindings({}, means);
    result.breakdown = compareBreakdowns({}, means);
    judge({}, now, options.gate, result);
    if (!result.gate.failed) result.gate.notices.insert(result.gate.notices.begin(), result.step.reason);
    return result;
}

}  // namespace

Comparison compareRuns(std::vector<RunSummary> base, std::vector<RunSummary> now, const CompareOptions& options) {
    Comparison result;
    result.step.threshold = options.step.threshold;
    const auto baseIds = clean(base, "base", result.notes), newIds = clean(now, "new", result.notes);
    for (const auto& [id, name] : newIds)
        if (baseIds.count(id))
            result.notes.push_back(fmt::format("{} is on both sides: it is compared with itself", name));
    std::vector<std::string> once;
    for (std::string& note : result.notes)
        if (!text::contains(once, note)) once.push_back(std::move(note));
    result.notes = std::move(once);
    result.history = options.history;
    result.base = comparedSide(base);
    result.now = comparedSide(now);
    addLosses(base, "base", result);
    addLosses(now, "new", result);
    if (now.empty())
        throw CompareError("there is no run on the new side: nothing to compare",
                           "name the new runs: rankscope compare --baseline DIR --new RUN");
    if (base.empty()) {
        result = withoutBase(now, options, std::move(result));
        setOverview(now, result.now);
        return result;
    }

    addSamples(base, now, options, result);
    if (options.samples != 1) {
        for (RunSummary& run : now) run = perSamples(std::move(run), options.samples);
        result.now = comparedSide(now);
    }
    useNamesThatAllRunsHave(base, now);
    result.step.samples = options.samples;
    Comparability comparability = checkComparability(base, now, options.across);
    result.incomparable = std::move(comparability.rows);
    compareSteps(base, now, comparability, options.step, result);
    const SideMeans before = meansOf(base), after = meansOf(now);
    result.findings = compareFindings(before, after);
    result.metrics = compareMetrics(base, now, comparability.categoriesRefused,
                                    comparability.stepTimeRefused ? result.step.reason : "");
    result.collectives = compareCollectives(before, after);
    result.kernels = compareKernels(before, after);
    if (!comparability.stepTimeRefused && comparability.categoriesRefused.empty()) {
        const double changeNs = result.step.changeNs();
        result.breakdown = compareBreakdowns(before, after);
        if (changeNs != 0) result.attribution = attributeChange(before, after, changeNs);
        if (changeNs != 0 && worthExplaining(result.step))
            result.causes = whyChanged(before, after, result.findings, changeNs);
    }
    setOverview(base, result.base);
    setOverview(now, result.now);
    judge(base, now, options.gate, result);
    if (result.history)
        for (std::string& sentence : historySentences(*result.history, result.step))
            result.notes.push_back(std::move(sentence));
    return result;
}

}  // namespace rankscope::compare
