// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/packed_job.h"
#include "analyzer/job/phase_one.h"
#include "analyzer/text/lists.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::job {

const facts::RankSummary* RecordedJob::findRank(int rank) const {
    const auto at = std::ranges::lower_bound(ranks, rank, {}, &facts::RankSummary::rank);
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const facts::StepWindow* RecordedJob::window(int rank, int step) const {
    const facts::RankFacts* known = facts.findRank(rank);
    if (known == nullptr) return nullptr;
    const auto at = std::ranges::find(known->steps, step, &facts::StepWindow::step);
    return at == known->steps.end() ? nullptr : &*at;
}

const facts::Attribution* RecordedJob::attribution(const facts::RankSummary& rank, int step) const {
    const facts::RankFacts* known = facts.findRank(rank.rank);
    for (size_t i = 0; known != nullptr && i < known->steps.size() && i < rank.steps.size(); ++i)
        if (known->steps[i].step == step) return &rank.steps[i];
    return nullptr;
}

std::span<const facts::CommTask> RecordedJob::tasks(const facts::RankSummary& rank, int step) const {
    const facts::StepWindow* where = window(rank.rank, step);
    if (where == nullptr) return {};
    const auto from = [&](int64_t ns) {
        return std::ranges::lower_bound(rank.communication, ns, {}, &facts::CommTask::startNs);
    };
    return {from(where->startNs), from(std::max(where->startNs, where->endNs()))};
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
        analysis.facts.losses.push_back(
            {.kind = "device_records_missing",
             .rank = rank.rank,
             .count = static_cast<int64_t>(rank.lostSteps.size()),
             .message = fmt::format(
                 "in {} of rank {}, first step {}, the device records of launched work are missing: {}",
                 text::countedText(rank.lostSteps.size(), "step"), rank.rank, rank.lostSteps.front(),
                 enough ? "these steps are left out on every rank" : "what looks idle there may have been busy")});
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
    if (analysis.facts.worldSize() == 1) return;  // whatever its links could do, it has nobody to talk to
    for (const std::string& warning : analysis.peaks.warnings)
        analysis.facts.losses.push_back({.kind = "link_peaks", .message = warning});
}

/// The ranks, and which steps are judged.
Analysis gathered(facts::TraceFacts facts, std::vector<facts::RankSummary> ranks) {
    Analysis analysis;
    analysis.facts = std::move(facts);
    int64_t gapId = 0;
    for (facts::RankSummary& rank : ranks)
        for (facts::IdleGap& gap : rank.idleGaps) gap.id = ++gapId;
    analysis.ranks = std::move(ranks);
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
    return analysis;
}

/// What ranks sent each other, over which links, and what that takes; and what their stages did.
void judgeMessages(Analysis& analysis, const costs::LinkSources& links,
                   const std::vector<costs::NcclTestsTable>& tables) {
    for (uint32_t i = 0; i < analysis.facts.collectives.size(); ++i)
        analysis.collectivesOf[analysis.facts.collectives[i].communicatorId].push_back(i);
    analysis.sharedCollectives = sharedCollectives(analysis.ranks);
    analysis.peaks = costs::resolveLinkPeaks(analysis.facts, links);
    assumeStartups(analysis.peaks);
    const std::vector<UndisturbedMessage> messages = undisturbedMessages(analysis);
    addReachedPeaks(analysis, messages);
    assumeStartups(analysis.peaks);  // of what stands in for a refuted peak
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks, tables);
    analysis.layout = facts::inferLayout(analysis.facts, analysis.ranks);
    analysis.kernelRatios = compareKernels(analysis);
    analysis.linkProbes = probeLinks(analysis, messages);
    analysis.pipelineTimes = timesOfPipelines(analysis);
}

/// Phase 2: what the ranks did to each other. The replay, and who waited for whom in it, asks for nothing that is
/// judged of the messages, and is made beside that where this process has the threads: both read the facts, the ranks
/// and the steps, and neither changes them.
Analysis joined(PhaseOne first, const LoadOptions& options) {
    Analysis analysis = gathered(std::move(first.facts), std::move(first.ranks));
    analysis.memoryOfOthers = std::move(first.memoryOfOthers);
    const unsigned threads = team::threadsFor(options.workers, options.team);
    std::future<std::pair<replay::ReplayModel, Delays>> replayed =
        std::async(threads == 1 ? std::launch::deferred : std::launch::async, [&analysis, &first, threads] {
            replay::ReplayModel model =
                replay::replay(analysis.facts, std::move(first.tasks), analysis.steps, first.window);
            Delays delays = delaysOf(analysis, model, threads);  // by then the messages are judged, mostly
            return std::pair(std::move(model), std::move(delays));
        });
    judgeMessages(analysis, options.links, options.tables);
    analysis.works = recordedWorks(analysis, first.window.replicas.leftOut);
    std::tie(analysis.replay, analysis.delays) = replayed.get();
    warnOfLinks(analysis);
    return analysis;
}

}  // namespace

std::optional<Analysis> helpReadAnalysis(const std::filesystem::path& database, team::Team& team,
                                         const PhaseOneHelp& help) {
    std::optional<facts::TraceFacts> facts = helpPhaseOne(database, team, help);
    if (!facts) return std::nullopt;
    return unpackForPlays(
        *std::move(facts), [&team] { return team.awaitPart(); }, team.nameOf(0));
}

Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options) {
    PhaseOne first = phaseOne(database, options);
    const std::vector<int> taking = first.taking;
    if (options.holders != nullptr) *options.holders = taking;
    Analysis analysis = joined(std::move(first), options);
    if (taking.size() > 1)
        packForPlays(analysis, options.tables, [&](std::string_view message) { options.team->sendToAll(message); });
    return analysis;
}

}  // namespace rankscope::job
