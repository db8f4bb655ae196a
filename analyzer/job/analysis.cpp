// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/replay/replay.h"
#include "collector/store/reader.h"

namespace rankscope::job {

const facts::RankSummary* RecordedJob::findRank(int rank) const {
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                     [](const facts::RankSummary& r, int wanted) { return r.rank < wanted; });
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const facts::StepWindow* RecordedJob::window(int rank, int step) const {
    const facts::RankFacts* known = facts.findRank(rank);
    if (known == nullptr) return nullptr;
    for (const facts::StepWindow& candidate : known->steps)
        if (candidate.step == step) return &candidate;
    return nullptr;
}

const facts::Attribution* RecordedJob::attribution(const facts::RankSummary& rank, int step) const {
    const facts::RankFacts* known = facts.findRank(rank.rank);
    for (size_t i = 0; known != nullptr && i < known->steps.size() && i < rank.steps.size(); ++i)
        if (known->steps[i].step == step) return &rank.steps[i];
    return nullptr;
}

std::vector<facts::CommTask> RecordedJob::tasks(const facts::RankSummary& rank, int step) const {
    std::vector<facts::CommTask> result;
    const facts::StepWindow* where = window(rank.rank, step);
    if (where == nullptr) return result;
    auto task = std::lower_bound(rank.communication.begin(), rank.communication.end(), where->startNs,
                                 [](const facts::CommTask& t, int64_t startNs) { return t.startNs < startNs; });
    for (; task != rank.communication.end() && task->startNs < where->startNs + where->durNs; ++task)
        result.push_back(*task);
    return result;
}

namespace {

constexpr size_t kFewestStepsLeft =
    3;  // fewer make no claim: then steps with gaps in the recording are better than none

/// Leaves out steps in which some rank's device records are missing, and says so.
void leaveOutLostSteps(Analysis& analysis, std::vector<double>& lengths) {
    std::set<int> lost;
    for (const facts::RankSummary& rank : analysis.ranks) lost.insert(rank.lostSteps.begin(), rank.lostSteps.end());
    const auto left = std::ranges::count_if(analysis.steps, [&](int step) { return lost.count(step) == 0; });
    const bool enough = left >= static_cast<std::ptrdiff_t>(kFewestStepsLeft);
    for (const facts::RankSummary& rank : analysis.ranks) {
        if (rank.lostSteps.empty()) continue;
        store::Loss loss;
        loss.kind = "device_records_missing";
        loss.severity = store::Severity::warning;
        loss.rank = rank.rank;
        loss.count = static_cast<int64_t>(rank.lostSteps.size());
        loss.message =
            fmt::format("in {} step{} of rank {}, first step {}, the device records of launched work are missing: {}",
                        rank.lostSteps.size(), rank.lostSteps.size() == 1 ? "" : "s", rank.rank, rank.lostSteps.front(),
                        enough ? "these steps are left out on every rank" : "what looks idle there may have been busy");
        analysis.facts.losses.push_back(std::move(loss));
    }
    if (!enough || lost.empty()) return;
    std::vector<int> steps;
    std::vector<double> kept;
    for (size_t i = 0; i < analysis.steps.size(); ++i) {
        if (lost.count(analysis.steps[i]) != 0) continue;
        steps.push_back(analysis.steps[i]);
        kept.push_back(lengths[i]);
    }
    analysis.steps = std::move(steps);
    lengths = std::move(kept);
}

/// Rates by specification and tables of large messages tell no start-up. Without one small messages would look slow on
/// a healthy link, so that they get the usual one; what a user left out stays open, and lower bounds get theirs where
/// they are compared.
void assumeStartups(costs::LinkPeaks& peaks) {
    for (const bool betweenNodes : {false, true}) {
        std::optional<costs::LinkClass>& link = betweenNodes ? peaks.inter : peaks.intra;
        if (!link || link->alphaNs > 0 || link->kind == costs::PeakKind::told || link->kind == costs::PeakKind::atLeast)
            continue;
        link->alphaNs = costs::unknownAlphaNs(betweenNodes);
        link->source += ", start-up assumed";
    }
    costs::nameSources(peaks);
}

void warnOfLinks(Analysis& analysis) {
    for (const std::string& warning : analysis.peaks.warnings) {
        store::Loss loss;
        loss.kind = "link_peaks";
        loss.severity = store::Severity::warning;
        loss.count = 1;
        loss.message = warning;
        analysis.facts.losses.push_back(std::move(loss));
    }
}

}  // namespace

Analysis makeAnalysis(facts::TraceFacts facts, std::vector<facts::RankSummary> ranks, const costs::LinkSources& links) {
    Analysis analysis;
    analysis.facts = std::move(facts);
    analysis.ranks = std::move(ranks);
    int64_t gapId = 0;
    for (facts::RankSummary& rank : analysis.ranks)
        for (facts::IdleGap& gap : rank.idleGaps) gap.id = ++gapId;
    std::map<int, int> seenBy;
    std::map<int, int64_t> longest;
    for (const facts::RankFacts& rank : analysis.facts.ranks) {
        for (const facts::StepWindow& step : rank.steps) {
            if (step.warmUp || !rank.recorded) continue;
            ++seenBy[step.step];
            longest[step.step] = std::max(longest[step.step], step.durNs);
        }
    }
    std::vector<double> lengths;
    for (const auto& [step, count] : seenBy) {
        if (count < static_cast<int>(analysis.ranks.size())) continue;
        analysis.steps.push_back(step);
        lengths.push_back(static_cast<double>(longest[step]));
    }
    leaveOutLostSteps(analysis, lengths);
    analysis.stepNs = facts::median(lengths);
    analysis.peaks = costs::resolveLinkPeaks(analysis.facts, links);
    assumeStartups(analysis.peaks);
    warnOfLinks(analysis);
    addReachedPeaks(analysis);
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks);
    analysis.layout = facts::inferLayout(analysis.facts, analysis.ranks);
    analysis.kernelRatios = compareKernels(analysis);
    analysis.linkProbes = probeLinks(analysis);
    return analysis;
}

namespace {

/// The ranks' tasks, handed in by the workers of phase 1.
class ReplayTasks {
  public:
    ReplayTasks(const facts::TraceFacts& facts, const replay::ReplayWindow& window)
        : m_facts(facts), m_window(window) {}
    void take(const facts::RankEvents& events) {
        replay::RankTasks tasks = replay::rankTasks(events, m_facts, m_window);
        const std::lock_guard lock(m_mutex);
        m_ranks.emplace(events.rank, std::move(tasks));
    }
    /// By rank.
    std::vector<replay::RankTasks> all() && {
        std::vector<replay::RankTasks> ranks;
        for (auto& [rank, tasks] : m_ranks) ranks.push_back(std::move(tasks));
        return ranks;
    }

  private:
    const facts::TraceFacts& m_facts;  // those of phase 1
    const replay::ReplayWindow m_window;
    std::mutex m_mutex;  // guards m_ranks
    std::map<int, replay::RankTasks> m_ranks;
};

facts::TraceFacts readFacts(const std::filesystem::path& database) {
    store::TraceReader trace(database);
    return facts::readTraceFacts(trace);
}

replay::ReplayWindow readWindow(const std::filesystem::path& database, const facts::TraceFacts& facts) {
    store::TraceReader trace(database);
    return replay::replayWindow(trace, facts);
}

}  // namespace

Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options) {
    // Phase 1: each rank for itself, one rank's events in memory per worker.
    facts::TraceFacts facts = readFacts(database);
    const replay::ReplayWindow window = readWindow(database, facts);
    ReplayTasks tasks(facts, window);
    const RankObserver observer = options.observer ? options.observer(facts) : RankObserver();
    std::vector<facts::RankSummary> ranks =
        facts::summarizeRanks(database, facts, options.workers, [&](const facts::RankEvents& events) {
            tasks.take(events);
            if (observer) observer(events);
        });

    // Phase 2: what the ranks did to each other.
    Analysis analysis = makeAnalysis(std::move(facts), std::move(ranks), options.links);
    analysis.replay = replay::replay(analysis.facts, std::move(tasks).all(), analysis.steps, window);
    analysis.delays = delaysOf(analysis, analysis.replay);
    return analysis;
}

}  // namespace rankscope::job
