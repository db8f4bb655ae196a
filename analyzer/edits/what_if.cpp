// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "analyzer/facts/statistics.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::edits {
namespace {

constexpr double kRunErrors =
    2;  // standard errors of the mean step by which a run may differ from what is expected of it

/// `before`: of all analysed steps, ns at equal tokens, without the last change.
void setSteps(ChangedJob& job, const Analysis& analysis, const std::vector<double>& before) {
    const Schedule schedule = simulate(job.graph);
    job.stepsNs = stepsNs(analysis, job.graph, schedule, job.effect, before);
    if (job.effect.played)
        job.effect.played->spanNs = spanNs(job.graph, schedule, job.effect.played->steps) / job.effect.tokens;
    if (job.stepsNs.empty()) throw EditError("no whole step is left after this change", "record more steps");
}

/// What each step gains.
std::vector<double> gains(const std::vector<double>& before, const std::vector<double>& after) {
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) differences.push_back(before[i] - after[i]);
    return differences;
}

double meanError(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double middle = facts::mean(values);
    double squares = 0;
    for (double value : values) squares += (value - middle) * (value - middle);
    const auto count = static_cast<double>(values.size());
    return std::sqrt(squares / (count - 1) / count);
}

std::vector<RankTimes> rankTimes(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps,
                                 double tokens) {
    std::map<int, RankTimes> byRank;
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        const bool counts = info.kind == TaskKind::kernel || info.kind == TaskKind::transfer;
        if (!counts || std::ranges::find(steps, info.step) == steps.end()) continue;
        RankTimes& times = byRank[graph.rankOf(task)];
        (info.kind == TaskKind::kernel ? times.computeNs : times.transferNs) +=
            static_cast<double>(graph.durationNs[task]);
        const TaskId arrival = graph.before[task];
        if (info.kind == TaskKind::transfer && arrival != kNoTask)
            times.waitingNs += static_cast<double>(schedule.startNs[task] - schedule.endNs[arrival]);
    }
    std::vector<RankTimes> result;
    const double count = static_cast<double>(std::max<size_t>(1, steps.size())) * tokens;
    for (auto& [rank, times] : byRank)
        result.push_back({rank, times.computeNs / count, times.waitingNs / count, times.transferNs / count});
    return result;
}

}  // namespace

double spanNs(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps) {
    std::map<int, int64_t> beginsNs;  // by rank
    int64_t longestNs = 0;
    for (const replay::StepMark& mark : graph.marks) {  // by rank, step
        const int64_t ns = schedule.startNs[mark.task];
        const bool ends = mark.closes ? mark.step == steps.back() : mark.step == steps.back() + 1;
        if (!mark.closes && mark.step == steps.front()) beginsNs[mark.rank] = ns;
        if (const auto begin = beginsNs.find(mark.rank); ends && begin != beginsNs.end())
            longestNs = std::max(longestNs, ns - begin->second);
    }
    return static_cast<double>(longestNs);
}

std::vector<double> stepsNs(const Analysis& analysis, const TaskGraph& graph, const Schedule& schedule,
                            const EditEffect& effect, const std::vector<double>& now) {
    if (!effect.played) {
        std::vector<double> steps = analysis.replay.stepsNs(graph, schedule);
        for (double& ns : steps) ns /= effect.tokens;
        return steps;
    }
    const double spanThenNs = spanNs(graph, schedule, effect.played->steps) / effect.tokens;
    if (effect.played->spanNs <= 0 || spanThenNs <= 0) return {};
    std::vector<double> steps = now;
    for (double& ns : steps) ns *= spanThenNs / effect.played->spanNs;
    return steps;
}

Analysis present(const Analysis& analysis, const EditEffect& effect) {
    Analysis now;
    static_cast<job::RecordedJob&>(now) = analysis;
    now.replay.leftOut = analysis.replay.leftOut;
    for (const auto& [id, communicator] : effect.communicators) now.facts.communicators[id] = communicator;
    for (facts::RankFacts& rank : now.facts.ranks)
        if (const auto host = effect.hosts.find(rank.rank); host != effect.hosts.end()) rank.hostId = host->second;
    for (facts::Pipeline& pipeline : now.layout.pipelines) {
        if (!effect.pipeline) break;
        pipeline.schedule = effect.pipeline->schedule;
        pipeline.microBatches = effect.pipeline->microBatches;
        pipeline.virtualStages = effect.pipeline->virtualStages;
    }
    if (effect.dataParallel) now.layout.dp = *effect.dataParallel;
    return now;
}

namespace {

/// The family's first trial and why the run does not take it; empty when it takes one of them.
std::string refusal(const TrialJob& unchanged, const EditFamily& family, int step) {
    std::istringstream trials(family.trials);
    std::string why;
    for (std::string trial; trials >> trial;) {
        constexpr std::string_view kStep = "{step}";
        if (const size_t at = trial.find(kStep); at != std::string::npos)
            trial.replace(at, kStep.size(), std::to_string(step));
        try {
            unchanged.with(parseEdits({trial}), Outlook::expected);
            return {};
        } catch (const EditError& error) {
            if (why.empty()) why = fmt::format("{}: {}", trial, error.what());
        }
    }
    return why;
}

}  // namespace

ChangedJob unchangedJob(const Analysis& analysis) {
    return {analysis.replay.graph, {}, analysis.replay.unchangedStepsNs};
}

void change(ChangedJob& job, const Edit& edit, const Analysis& analysis, const TrialGraph* from) {
    if (job.effect.changesLayout())
        edit.apply(job.graph, present(analysis, job.effect), job.effect, from);
    else
        edit.apply(job.graph, analysis, job.effect, from);
    setSteps(job, analysis, std::vector(job.stepsNs));
}

TrialJob::TrialJob(const Analysis& analysis)
    : m_analysis(analysis), m_job{{}, {}, analysis.replay.unchangedStepsNs}, m_trial(analysis.replay.graph, analysis) {}

const TrialGraph* TrialJob::withoutChanges() const {
    if (hasNoChanges()) return &m_trial;
    return m_of == nullptr ? nullptr : &m_of->m_trial;
}

TrialJob::TrialJob(ChangedJob job, const Analysis& analysis, std::shared_ptr<const TrialJob> of)
    : m_analysis(analysis),
      m_job(std::move(job)),
      m_of(of == nullptr || of->hasNoChanges() ? std::move(of) : of->m_of),
      m_present(m_job.effect.changesLayout() ? std::optional(present(analysis, m_job.effect)) : std::nullopt),
      m_trial(m_job.graph, m_present ? *m_present : analysis, Tried::often,
              m_of != nullptr ? &m_of->m_trial : nullptr) {}

void TrialJob::readPipeline() const {
    if (!m_analysis.layout.pipelines.empty()) static_cast<void>(m_trial.pipeline());
}

ChangedJob TrialJob::with(const Edits& edits, Outlook outlook) const {
    ChangedJob job{{}, m_job.effect, {}};
    job.effect.outlook = outlook;
    job.graph = edits.front()->applied(m_trial, job.effect);
    setSteps(job, m_analysis, m_job.stepsNs);
    for (const auto& edit : edits | std::views::drop(1)) change(job, *edit, m_analysis, withoutChanges());
    return job;
}

std::string listEdits(const Analysis& analysis) {
    const TrialJob unchanged(analysis);
    std::string possible, others;
    for (const EditFamily& family : editFamilies()) {
        const std::string why = refusal(unchanged, family, analysis.steps.front());
        if (why.empty())
            possible += fmt::format("{}\n    {}\n", family.syntax, family.help);
        else
            others += text::wrapped(why);
    }
    return possible + (others.empty() ? "" : "\nNot for this run\n" + others);
}

facts::Estimate saving(const std::vector<double>& before, const std::vector<double>& after) {
    const std::vector<double> differences = gains(before, after);
    // What a typical step gains varies by the quartiles, the mean over rare events by its standard error.
    return facts::Estimate::around(facts::mean(before) - facts::mean(after),
                                   std::max(facts::quartileHalfWidth(differences), meanError(differences)));
}

WhatIf whatIf(const Analysis& analysis, const Edits& edits) {
    const replay::ReplayModel& replay = analysis.replay;
    const TrialJob unchanged(analysis);
    const ChangedJob after = unchanged.with(edits, Outlook::expected);
    StepSides sides = sidesOf(after.stepsNs);
    const auto stepsWith = [&](Outlook outlook) { return unchanged.with(edits, outlook).stepsNs; };
    if (after.effect.hostMaySlow) addSlowHost(stepsWith, sides);
    if (after.effect.chanceNs > 0) addChance(unchanged.stepsNs(), after.effect, sides);
    if (after.effect.open) addOutlooks(unchanged.stepsNs(), after.effect, stepsWith, sides);
    WhatIf result;
    result.measuredStepNs = replay.measuredStepNs;
    result.replayedStepNs = replay.predictedStepNs;
    result.replayError = replay.error();
    result.changedStepNs = facts::mean(after.stepsNs);
    const bool rare = gainedByRareSteps(unchanged.stepsNs(), after.stepsNs);
    result.typicalStepNs = rare || analysis.stepNs <= 0 ? replay.measuredStepNs : analysis.stepNs;
    result.tokens = after.effect.tokens;
    result.replicas = after.effect.replicas;
    result.savingNs = gainOf(sidesOf(unchanged.stepsNs()), sides).savingNs;
    const Schedule schedule = simulate(after.graph);
    const std::vector<int>& played = after.effect.played ? after.effect.played->steps : replay.steps;
    result.before = rankTimes(replay.graph, replay.unchanged, played, 1);
    result.after = rankTimes(after.graph, schedule, played, result.tokens);
    result.pathBefore = replay::criticalPath(replay.graph, replay.unchanged, replay.steps);
    result.pathAfter = replay::criticalPath(after.graph, schedule, played);
    result.assumed = after.effect.assumed;
    if (!replay.leftOut.empty())
        result.assumed.push_back(fmt::format("{} of {} ranks stand for the others, which run the same program",
                                             analysis.ranks.size() - replay.leftOut.size(), analysis.ranks.size()));
    return result;
}

namespace {

void widen(facts::Estimate& gain, const std::vector<double>& before, const std::vector<double>& after) {
    const facts::Estimate typical = typicalSaving(before, after);
    const double mean = facts::mean(gains(before, after));
    gain.low = std::min({gain.low, typical.low, mean});
    gain.high = std::max({gain.high, typical.high, mean});
}

}  // namespace

StepSides sidesOf(std::vector<double> stepsNs) {
    StepSides sides;
    sides.pessimistic = sides.optimistic = stepsNs;
    sides.expected = std::move(stepsNs);
    return sides;
}

void addOutlooks(const std::vector<double>& unchanged, const EditEffect& effect,
                 const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides,
                 const std::function<bool(const StepSides&)>& enough) {
    for (Outlook outlook : kOutlooks) {
        try {
            sides.outlooks[outlook] = stepsWith(outlook);
        } catch (const EditError&) {
            sides.outlooks.erase(outlook);
            sides.unplayable = true;
        }
        if (enough && enough(sides)) return;
    }
    addChance(unchanged, effect, sides);
}

std::vector<double> stepsBetweenEnds(std::vector<double> stepsNs) {
    if (stepsNs.size() < 4) return stepsNs;
    return {stepsNs.begin() + 1, stepsNs.end() - 1};
}

void addChance(const std::vector<double>& unchanged, const EditEffect& effect, StepSides& sides) {
    const double own = effect.chanceNs / std::sqrt(static_cast<double>(std::max<size_t>(1, unchanged.size())));
    sides.chanceNs = kRunErrors * std::hypot(facts::medianError(stepsBetweenEnds(unchanged)), own);
}

void addSlowHost(const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides) {
    try {
        sides.pessimistic = stepsWith(Outlook::dear);
    } catch (const EditError&) {
        sides.unplayable = true;
    }
}

SideGain gainOf(const StepSides& before, const StepSides& after) {
    SideGain gain{typicalSaving(before.expected, after.expected), {}, false};
    facts::Estimate& saving = gain.savingNs;
    widen(saving, before.expected, after.expected);
    widen(saving, before.pessimistic, after.pessimistic);
    widen(saving, before.optimistic, after.optimistic);
    for (const auto& [outlook, steps] : after.outlooks) {
        const auto same = before.outlooks.find(outlook);
        const std::vector<double>& from = same == before.outlooks.end() ? before.expected : same->second;
        if (steps == from)
            gain.mayDoNothing = true;
        else
            widen(saving, from, steps);
    }
    const double chance = std::sqrt(
        std::max(0.0, after.chanceNs * after.chanceNs - before.chanceNs * before.chanceNs));  // of what is new
    saving = saving.widened(chance);
    if (gain.mayDoNothing || after.unplayable) {
        saving.low = std::min(saving.low, 0.0);
        saving.high = std::max(saving.high, 0.0);
    }
    gain.mayDoNothing = gain.mayDoNothing && !after.unplayable;
    return gain;
}

bool gainedByRareSteps(const std::vector<double>& before, const std::vector<double>& after) {
    return facts::median(gains(before, after)) < kRecurringGain * saving(before, after).expected;
}

facts::Estimate typicalSaving(const std::vector<double>& before, const std::vector<double>& after) {
    // What hits some steps only: steps differ widely in what they gain, their mean is known to its standard error.
    if (gainedByRareSteps(before, after))
        return facts::Estimate::around(facts::mean(before) - facts::mean(after), meanError(gains(before, after)));
    const facts::Estimate result = saving(before, after);
    const double shift = facts::median(before) - facts::median(after) - result.expected;
    return result + facts::Estimate::around(shift, 0);
}

}  // namespace rankscope::edits
