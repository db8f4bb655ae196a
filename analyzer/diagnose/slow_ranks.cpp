// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

bool contains(const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Compute that the rank would not need at its peers' pace.
double extraCompute(const job::Analysis& analysis, const facts::RankSummary& rank, int step, double ratio) {
    const facts::Attribution* own = analysis.attribution(rank, step);
    return own == nullptr || ratio <= 1 ? 0 : static_cast<double>(own->computeNs) * (1 - 1 / ratio);
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
            rows.push_back({task.exposedWaitNs,
                            {collective ? "collective" : "kernel", collective ? task.collectiveId : task.kernelId,
                             peer.rank, fmt::format("rank {} waits {}", peer.rank, waitText(task))}});
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
    finding.evidence.facts.push_back(fmt::format(
        "the same kernels take {:.2f}x as long on {} as on {} peers (median of {} steps, +/- {:.3f})", group.ratio, who,
        group.members.size() == 1 ? "its" : "their", first.perStep.size() - first.firstStep, first.error));
    finding.evidence.numbers.emplace_back("kernel_time_ratio", group.ratio);
    const auto nameId = static_cast<size_t>(first.slowestKey.nameId);
    if (first.slowestRatio > 1 && nameId < analysis.facts.strings.size()) {
        finding.evidence.facts.push_back(
            fmt::format("most of it in {} (grid {}): {:.2f}x", text::readableKernelName(analysis.facts.strings[nameId]),
                        first.slowestKey.gridBlocks < 0 ? "unknown" : std::to_string(first.slowestKey.gridBlocks),
                        first.slowestRatio));
    }
    addLossForRanks(analysis, group.ranks, who, finding);
    addWaitRows(analysis, group, finding);
}

}  // namespace

std::string waitText(const facts::CommTask& task) {
    const std::string all = text::durationText(static_cast<double>(task.waitNs)),
                      exposed = text::durationText(static_cast<double>(task.exposedWaitNs));
    return fmt::format("{} for rank {}{}", all, task.lastRank, exposed == all ? "" : ", " + exposed + " of it exposed");
}

void addLossForRanks(const job::Analysis& analysis, const std::vector<int>& ranks, const std::string& who,
                     job::Finding& finding) {
    const double share = analysis.delays.shareFor(ranks);
    if (share <= 0) return;
    finding.evidence.facts.push_back(
        fmt::format("{} of what the others lose to late ranks, waiting and transfer, is for {}",
                    share < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", 100 * share), who));
    finding.evidence.numbers.emplace_back("wait_share_for_rank", share);
}

bool isSlow(const job::KernelRatio& ratio) {
    return ratio.slowKernels > kSlowKernels && takesLonger(ratio);
}

bool takesLonger(const job::KernelRatio& ratio) {
    if (ratio.comparedShare < kComparedShare || ratio.ratio < kSlowRatio) return false;
    if (ratio.ratio - 1 < kSlowErrors * ratio.error) return false;
    const double halfway = 1 + (ratio.ratio - 1) / 2;
    const auto slower =
        std::count_if(ratio.perStep.begin(), ratio.perStep.end(), [&](double r) { return r > halfway; });
    return static_cast<double>(slower) >= kSlowStepsShare * static_cast<double>(ratio.perStep.size() - ratio.firstStep);
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
    std::optional<std::unordered_map<int64_t, int>> shortest;  // where clocks do not tell who came last
    const auto lastRankOf = [&](const facts::CommTask& task) {
        if (task.lastRank >= 0 || task.collectiveId == 0) return task.lastRank;
        if (!shortest) shortest = shortestKernels(analysis.facts);
        const auto last = shortest->find(task.collectiveId);
        return last == shortest->end() ? task.lastRank : last->second;
    };
    const size_t firstStep = ratios[group.members.front()].firstStep;
    cost.extraNs.assign(firstStep, 0);
    for (size_t s = firstStep; s < analysis.steps.size(); ++s) {
        double waited = 0;  // of the peer that waits most, hidden under compute or not: nobody saves more
        for (const facts::RankSummary& peer : analysis.ranks) {
            if (contains(group.ranks, peer.rank)) continue;
            double total = 0, waits = 0;
            for (const facts::CommTask& task : analysis.tasks(peer, analysis.steps[s])) {
                const auto exposed = static_cast<double>(task.exposedWaitNs);
                total += exposed;
                waits += static_cast<double>(task.waitNs) - exposed;
                if (lastRankOf(task) < 0) cost.undecidedNs += exposed;
            }
            waited = std::max(waited, waits + standstillNs(analysis, peer.rank, analysis.steps[s]));
            cost.waitByPeer[peer.rank] += total;
            cost.waitedNs += total;
        }
        // Of slow ranks the one that gains least still holds the step; whoever costs others time is waited for.
        std::vector<double> extra;
        for (size_t member : group.members)
            extra.push_back(
                extraCompute(analysis, analysis.ranks[member], analysis.steps[s], ratios[member].perStep[s]));
        cost.extraNs.push_back(std::min(facts::median(std::move(extra)), waited));
    }
    return cost;
}

void describeSlowness(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                      const SlowGroup& group, const SlowCost& cost, job::Finding& finding) {
    finding.ranks = group.ranks;
    const bool pipeline = analysis.layout.pipelineOf(group.ranks.front()) != nullptr;
    if (!pipeline && cost.waitedNs > 0 && cost.undecidedNs > cost.waitedNs / 2)
        finding.whyInconclusive = fmt::format(
            "its kernels are slower, but who arrives last is hidden by the clock bound of {:.1f} us between hosts",
            static_cast<double>(analysis.facts.clock.boundNs) / 1e3);
    const size_t firstStep = ratios[group.members.front()].firstStep;
    const double perStep = 1.0 / static_cast<double>(analysis.steps.size() - firstStep);
    if (firstStep == 0)
        setCost(analysis, cost.extraNs, finding);
    else
        setMeanCost(analysis, std::accumulate(cost.extraNs.begin(), cost.extraNs.end(), 0.0) * perStep, finding,
                    firstStep);
    setTypicalStep(analysis, cost.extraNs, group.ranks.front(), finding, firstStep);
    for (const auto& [peer, wait] : cost.waitByPeer)
        if (wait * perStep > 0.25 * finding.costNs) finding.affectedRanks.push_back(peer);
    addEvidence(analysis, ratios, group, finding);
}

}  // namespace rankscope::diagnose
