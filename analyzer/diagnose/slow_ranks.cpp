// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/facts/step_model.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::diagnose {
namespace {

constexpr StragglerThresholds kThresholds;

bool contains(const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Compute of the rank waits for others all through the step: in collectives of activations or tokens.
bool worksInLockstep(const job::Analysis& analysis, const facts::RankSummary& rank) {
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        const facts::CommRole role = analysis.layout.role(id);
        if ((role == facts::CommRole::activations || role == facts::CommRole::experts) &&
            contains(communicator.ranks, rank.rank))
            return true;
    }
    return false;
}

/// Compute that the rank would not need at its peers' pace.
double extraCompute(const job::Analysis& analysis, const facts::RankSummary& rank, int step, double ratio) {
    const facts::Attribution* own = analysis.attribution(rank, step);
    return own == nullptr || ratio <= 1 ? 0 : static_cast<double>(own->computeNs) * (1 - 1 / ratio);
}

/// How much earlier the last rank is done when the group computes as fast as its peers and no other rank is slow.
double ownTimeSaved(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios, const SlowGroup& group,
                    const facts::RankSummary& suspect, size_t stepIndex) {
    const int step = analysis.steps[stepIndex];
    double before = 0, after = 0;
    const double usualTransfer = exposedTransferNs(analysis, suspect, step);
    for (size_t r = 0; r < analysis.ranks.size(); ++r) {
        const facts::RankSummary& rank = analysis.ranks[r];
        const bool member = contains(group.ranks, rank.rank);
        if (!member && isSlow(ratios[r])) continue;
        const double own = ownTimeNs(analysis, rank, step);
        // Those that wait for the suspect see transfers that their compute hides otherwise.
        double less = std::max(0.0, exposedTransferNs(analysis, rank, step) - usualTransfer);
        if (member) less = extraCompute(analysis, rank, step, ratios[r].perStep[stepIndex]);
        before = std::max(before, own);
        after = std::max(after, own - less);
    }
    return std::max(0.0, before - after);
}

/// Step time saved when the rank computed as fast as its peers.
double savingOf(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios, const SlowGroup& group,
                size_t member, size_t stepIndex, double typicalPeerWaitNs) {
    const facts::RankSummary& suspect = analysis.ranks[member];
    const int step = analysis.steps[stepIndex];
    const double ratio = ratios[member].perStep[stepIndex];
    const facts::Attribution* own = analysis.attribution(suspect, step);
    if (own == nullptr || ratio <= 1) return 0;
    const double compute = static_cast<double>(own->computeNs);
    const double extra = extraCompute(analysis, suspect, step, ratio);
    // In a pipeline the beat of the slowest stage shows as the others' waiting; elsewhere the step model tells what
    // other work hides, unless compute waits for every collective.
    if (analysis.layout.pipelineOf(suspect.rank) != nullptr)
        return std::clamp(typicalPeerWaitNs - static_cast<double>(own->exposedWaitNs), 0.0, extra);
    if (worksInLockstep(analysis, suspect))
        return std::min(extra, ownTimeSaved(analysis, ratios, group, suspect, stepIndex));
    const std::vector<facts::ModelTask> before = facts::modelTasks(analysis.tasks(suspect, step));
    std::vector<facts::ModelTask> after = before;
    for (facts::ModelTask& task : after) {
        task.readyAt /= ratio;
        task.neededAt /= ratio;
    }
    return std::clamp(facts::modelStepNs(before, compute) - facts::modelStepNs(after, compute / ratio), 0.0, extra);
}

/// By collective: the member with the shortest kernel. All leave together, so it came last, and durations need no clock
/// in common.
std::unordered_map<int64_t, int> shortestKernels(const facts::TraceFacts& facts) {
    std::unordered_map<int64_t, std::pair<int64_t, int>> shortest;
    for (const store::CollectiveMember& member : facts.members) {
        if (!member.arrivalNs || !member.endNs) continue;
        const std::pair<int64_t, int> kernel{*member.endNs - *member.arrivalNs, member.rank};
        const auto [known, isNew] = shortest.try_emplace(member.collectiveId, kernel);
        if (!isNew) known->second = std::min(known->second, kernel);
    }
    std::unordered_map<int64_t, int> ranks;
    for (const store::Collective& collective : facts.collectives) {
        const auto kernel = shortest.find(collective.id);
        if (kernel != shortest.end() && store::isSynchronizing(collective.op))
            ranks[collective.id] = kernel->second.second;
    }
    return ranks;
}

/// The longest waits in the typical step are the rows to look at.
void addWaitRows(const job::Analysis& analysis, const SlowGroup& group, job::Finding& finding) {
    std::vector<std::pair<int64_t, job::EvidenceRow>> rows;
    for (const facts::RankSummary& peer : analysis.ranks) {
        if (contains(group.ranks, peer.rank)) continue;
        for (const facts::CommTask& task : peer.communication) {
            if (task.startNs < finding.windowStartNs || task.startNs >= finding.windowEndNs ||
                !contains(group.ranks, task.lastRank))
                continue;
            const bool collective = task.collectiveId != 0;
            rows.push_back(
                {task.exposedWaitNs,
                 {collective ? "collective" : "kernel", collective ? task.collectiveId : task.kernelId, peer.rank,
                  fmt::format("rank {} waits {:.3f} ms for rank {}", peer.rank,
                              static_cast<double>(task.exposedWaitNs) / 1e6, task.lastRank)}});
        }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [wait, row] : rows) {
        const bool known = std::any_of(
            finding.evidence.rows.begin(), finding.evidence.rows.end(),
            [&, id = row.id, table = row.table](const job::EvidenceRow& r) { return r.id == id && r.table == table; });
        if (finding.evidence.rows.size() < 5 && wait > 0 && !known) finding.evidence.rows.push_back(row);
    }
}

void addEvidence(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios, const SlowGroup& group,
                 job::Finding& finding) {
    const std::string who = ranksText(analysis, group.ranks);
    const job::KernelRatio& first = ratios[group.members.front()];
    finding.evidence.facts.push_back(
        fmt::format("the same kernels take {:.2f}x as long on {} as on {} peers (median of {} steps, +/- {:.3f})",
                    group.ratio, who, group.members.size() == 1 ? "its" : "their", first.perStep.size(), first.error));
    finding.evidence.numbers.emplace_back("kernel_time_ratio", group.ratio);
    const auto nameId = static_cast<size_t>(first.slowestKey.nameId);
    if (first.slowestRatio > 1 && nameId < analysis.facts.strings.size()) {
        finding.evidence.facts.push_back(
            fmt::format("most of it in {} (grid {}): {:.2f}x", text::readableKernelName(analysis.facts.strings[nameId]),
                        first.slowestKey.gridBlocks < 0 ? "unknown" : std::to_string(first.slowestKey.gridBlocks),
                        first.slowestRatio));
    }
    const double lastShare = analysis.delays.shareFor(group.ranks);
    if (lastShare > 0) {
        finding.evidence.facts.push_back(fmt::format(
            "{:.0f} % of what the others lose to late ranks, waiting and transfer, is for {}", 100 * lastShare, who));
        finding.evidence.numbers.emplace_back("wait_share_for_rank", lastShare);
    }
    addWaitRows(analysis, group, finding);
}

}  // namespace

bool isSlow(const job::KernelRatio& ratio) {
    return ratio.slowKernels > kThresholds.slowKernels && takesLonger(ratio);
}

bool takesLonger(const job::KernelRatio& ratio) {
    if (ratio.comparedShare < kThresholds.comparedShare || ratio.ratio < kThresholds.ratio) return false;
    if (ratio.ratio - 1 < kThresholds.errors * ratio.error) return false;
    const double halfway = 1 + (ratio.ratio - 1) / 2;
    const auto slower =
        std::count_if(ratio.perStep.begin(), ratio.perStep.end(), [&](double r) { return r > halfway; });
    return static_cast<double>(slower) >= kThresholds.stepsShare * static_cast<double>(ratio.perStep.size());
}

SlowGroup makeSlowGroup(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                        std::vector<size_t> members) {
    SlowGroup group{std::move(members), 0, {}};
    std::vector<double> values;
    for (size_t member : group.members) {
        values.push_back(ratios[member].ratio);
        group.ranks.push_back(analysis.ranks[member].rank);
    }
    group.ratio = facts::median(std::move(values));
    return group;
}

SlowCost costOfSlowness(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                        const SlowGroup& group) {
    SlowCost cost;
    const std::unordered_map<int64_t, int> shortest = shortestKernels(analysis.facts);
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        std::vector<double> peers;
        double waited = 0;  // hidden under compute or not
        for (const facts::RankSummary& peer : analysis.ranks) {
            if (contains(group.ranks, peer.rank)) continue;
            double total = 0;
            for (const facts::CommTask& task : analysis.tasks(peer, analysis.steps[s])) {
                const auto exposed = static_cast<double>(task.exposedWaitNs);
                total += exposed;
                waited += static_cast<double>(task.waitNs);
                const auto last = shortest.find(task.collectiveId);
                const int lastRank = task.lastRank >= 0 || last == shortest.end() ? task.lastRank : last->second;
                if (contains(group.ranks, lastRank)) cost.waitedForGroupNs += exposed;
                if (lastRank < 0) cost.undecidedNs += exposed;
            }
            peers.push_back(total);
            cost.waitByPeer[peer.rank] += total;
            cost.waitedNs += total;
        }
        const double typicalWait = facts::median(std::move(peers));
        // Of slow ranks the one that gains least still holds the step; whoever costs others time is waited for.
        std::vector<double> savings;
        for (size_t member : group.members)
            savings.push_back(savingOf(analysis, ratios, group, member, s, typicalWait));
        cost.savings.push_back(waited > 0 ? facts::median(std::move(savings)) : 0);
    }
    cost.shares = cost.savings;
    return cost;
}

void shareSavings(std::vector<SlowCost>& costs) {
    for (size_t s = 0; !costs.empty() && s < costs[0].savings.size(); ++s) {
        std::vector<SlowCost*> slowest;
        for (SlowCost& cost : costs) slowest.push_back(&cost);
        std::stable_sort(slowest.begin(), slowest.end(),
                         [s](const SlowCost* a, const SlowCost* b) { return a->savings[s] > b->savings[s]; });
        double share = 0;
        for (size_t k = slowest.size(); k-- > 0;) {
            const double next = k + 1 < slowest.size() ? slowest[k + 1]->savings[s] : 0;
            share += (slowest[k]->savings[s] - next) / static_cast<double>(k + 1);
            slowest[k]->shares[s] = share;
        }
    }
}

bool describeSlowness(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                      const SlowGroup& group, const SlowCost& cost, job::Finding& finding) {
    finding.ranks = group.ranks;
    setCost(analysis, cost.savings, finding);
    setTypicalStep(analysis, cost.savings, group.ranks.front(), finding);
    // What it costs decides whether it is said; what it saves must add up with the others.
    const job::Verdict verdict = finding.verdict;
    setCost(analysis, cost.shares, finding);
    finding.verdict = verdict;
    // What costs little and rests on a step or two is not even worth a note.
    if (finding.verdict == job::Verdict::note &&
        static_cast<int>(analysis.steps.size()) < CommonThresholds::kFewestSteps)
        return false;
    const double perStep = 1.0 / static_cast<double>(analysis.steps.size());
    for (const auto& [peer, wait] : cost.waitByPeer)
        if (wait * perStep > 0.25 * *finding.savingNsPerStep) finding.affectedRanks.push_back(peer);
    addEvidence(analysis, ratios, group, finding);
    if (facts::median(cost.shares) < 0.99 * facts::median(cost.savings))
        finding.evidence.facts.push_back(
            "another rank is slow as well: the saving is this one's part of what repairing all of them gains");
    const bool pipeline = analysis.layout.pipelineOf(group.ranks.front()) != nullptr;
    if (finding.verdict == job::Verdict::found && !pipeline && cost.waitedNs > 0 &&
        cost.undecidedNs > cost.waitedNs / 2) {
        finding.verdict = job::Verdict::inconclusive;
        finding.whyInconclusive = fmt::format(
            "its kernels are slower, but who arrives last is hidden by the clock bound of {:.1f} us between hosts",
            static_cast<double>(analysis.facts.clock.boundNs) / 1e3);
    }
    return true;
}

}  // namespace rankscope::diagnose
