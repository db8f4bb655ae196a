// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs304_uneven_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/detectors/host_cost.h"
#include "analyzer/detectors/kernel_ratios.h"
#include "analyzer/report/kernel_name.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

constexpr UnevenWorkThresholds kThresholds;

/// A rank's compute in one step, at the pace of its peers' devices.
struct Work {
    double totalNs = 0;
    double differentNs = 0;  // in kernels that not every peer runs as often in that shape
    double kernels = 0;
};

/// Ranks that would do the same work in a balanced job, as indices into analysis.ranks: one pipeline stage, or all.
std::vector<std::vector<size_t>> peerGroups(const Analysis& analysis) {
    std::map<int, std::vector<size_t>> byStage;
    for (size_t r = 0; r < analysis.ranks.size(); ++r) byStage[analysis.layout.stageOf(analysis.ranks[r].rank)].push_back(r);
    std::vector<std::vector<size_t>> groups;
    for (auto& [stage, members] : byStage)
        if (members.size() > 1) groups.push_back(std::move(members));
    return groups;
}

std::vector<Work> workOf(const Analysis& analysis, const std::vector<size_t>& group, const std::vector<KernelRatio>& ratios, int step) {
    std::map<KernelKey, std::vector<int>> counts;
    for (size_t i = 0; i < group.size(); ++i) {
        for (const KernelStatistics& kernel : analysis.ranks[group[i]].kernels) {
            if (kernel.step != step) continue;
            std::vector<int>& count = counts[kernel.key];
            count.resize(group.size());
            count[i] = kernel.count;
        }
    }
    std::vector<Work> work(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
        const KernelRatio& ratio = ratios[group[i]];
        const double pace = ratio.comparedShare > 0.1 && ratio.ratio > 0 ? ratio.ratio : 1;
        for (const KernelStatistics& kernel : analysis.ranks[group[i]].kernels) {
            if (kernel.step != step) continue;
            const std::vector<int>& count = counts.at(kernel.key);
            const bool same = std::all_of(count.begin(), count.end(), [&](int other) { return other == kernel.count; });
            const double ns = static_cast<double>(kernel.totalNs) / pace;
            work[i].totalNs += ns;
            work[i].kernels += kernel.count;
            if (!same) work[i].differentNs += ns;
        }
    }
    return work;
}

double meanOf(const std::vector<Work>& work, double Work::* part) {
    double sum = 0;
    for (const Work& w : work) sum += w.*part;
    return sum / static_cast<double>(std::max<size_t>(1, work.size()));
}

/// What one group of peers shows over the steps.
struct Imbalance {
    std::vector<size_t> group;
    std::vector<double> heaviestRatio;          // by step: heaviest / mean; 1 where the work is the same
    std::vector<int> timesHeavy;                // by member
    std::vector<std::vector<double>> excessNs;  // by member, by step: over the mean; negative below it
};

Imbalance imbalanceOf(const Analysis& analysis, const std::vector<size_t>& group, const std::vector<KernelRatio>& ratios) {
    Imbalance result{group, {}, std::vector<int>(group.size(), 0), std::vector<std::vector<double>>(group.size())};
    for (int step : analysis.steps) {
        const std::vector<Work> work = workOf(analysis, group, ratios, step);
        const double mean = meanOf(work, &Work::totalNs), meanDifferent = meanOf(work, &Work::differentNs);
        const auto heaviest = std::max_element(work.begin(), work.end(), [](const Work& a, const Work& b) { return a.totalNs < b.totalNs; });
        const double excess = heaviest->totalNs - mean;
        const bool differs = heaviest->differentNs - meanDifferent >= kThresholds.differentShare * excess && heaviest->differentNs > 0;
        result.heaviestRatio.push_back(differs && mean > 0 ? heaviest->totalNs / mean : 1);
        for (size_t i = 0; i < group.size(); ++i) {
            result.excessNs[i].push_back(differs ? work[i].totalNs - mean : 0);
            result.timesHeavy[i] += differs && work[i].totalNs - mean >= 0.5 * excess;
        }
    }
    return result;
}

std::vector<int> heavyRanks(const Analysis& analysis, const Imbalance& imbalance) {
    std::vector<int> always, sometimes;
    for (size_t i = 0; i < imbalance.group.size(); ++i) {
        const int rank = analysis.ranks[imbalance.group[i]].rank;
        if (imbalance.timesHeavy[i] >= kThresholds.stepsShare * static_cast<double>(analysis.steps.size())) always.push_back(rank);
        if (imbalance.timesHeavy[i] > 0) sometimes.push_back(rank);
    }
    return always.empty() ? sometimes : always;
}

size_t heaviestMember(const Imbalance& imbalance, size_t step) {
    size_t heaviest = 0;
    for (size_t i = 1; i < imbalance.group.size(); ++i)
        if (imbalance.excessNs[i][step] > imbalance.excessNs[heaviest][step]) heaviest = i;
    return heaviest;
}

/// Step by step: how much earlier the last rank is done when every peer has the mean work.
std::vector<double> costsOf(const Analysis& analysis, const Imbalance& imbalance) {
    std::vector<double> costs;
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        double before = 0, after = 0, most = 0;
        const size_t heaviest = imbalance.group[heaviestMember(imbalance, s)];
        const double usualTransfer = exposedTransferNs(analysis, analysis.ranks[heaviest], analysis.steps[s]);
        for (size_t r = 0; r < analysis.ranks.size(); ++r) {
            const double own = ownTimeNs(analysis, analysis.ranks[r], analysis.steps[s]);
            const auto member = std::find(imbalance.group.begin(), imbalance.group.end(), r);
            const double excess = member == imbalance.group.end() ? 0 : imbalance.excessNs[static_cast<size_t>(member - imbalance.group.begin())][s];
            // Lighter ranks run out of compute waiting, and see transfers that equal work hides.
            const double uncovered = r == heaviest ? 0 : std::max(0.0, exposedTransferNs(analysis, analysis.ranks[r], analysis.steps[s]) - usualTransfer);
            before = std::max(before, own);
            after = std::max(after, own - excess - uncovered);
            most = std::max(most, excess);
        }
        costs.push_back(std::clamp(before - after, 0.0, most));
    }
    return costs;
}

/// All-to-all bytes of a rank per step, median.
double exchangedBytes(const Analysis& analysis, const RankSummary& rank) {
    std::vector<double> bytes;
    for (int step : analysis.steps) {
        double sum = 0;
        for (const CommTask& task : analysis.tasks(rank, step))
            if (task.op == store::Op::allToAll && task.bytes > 0) sum += static_cast<double>(task.bytes);
        bytes.push_back(sum);
    }
    return median(bytes);
}

void addEvidence(const Analysis& analysis, const Imbalance& imbalance, Finding& finding) {
    std::string list;
    for (size_t i = 0; i < imbalance.group.size() && i < 16; ++i)
        list += fmt::format("{}{}: {:+.1f}", i == 0 ? "" : ", ", analysis.ranks[imbalance.group[i]].rank, median(imbalance.excessNs[i]) / 1e6);
    finding.evidence.facts.push_back("compute over the mean of the peers, ms per step (median) by rank: " + list);
    finding.evidence.numbers.emplace_back("heaviest_over_mean", median(imbalance.heaviestRatio));
    for (size_t i : imbalance.group) {
        const RankSummary& rank = analysis.ranks[i];
        if (rank.rank != finding.ranks.front()) continue;
        if (const double bytes = exchangedBytes(analysis, rank); bytes > 0)
            finding.evidence.facts.push_back(fmt::format("rank {} exchanges {:.1f} MB in all-to-alls per step", rank.rank, bytes / 1e6));
        for (const CommTask& task : analysis.ranks[i == imbalance.group.front() ? imbalance.group.back() : imbalance.group.front()].communication) {
            const bool shown = task.startNs >= finding.windowStartNs && task.startNs < finding.windowEndNs && task.lastRank == rank.rank && task.collectiveId != 0;
            if (shown && task.exposedWaitNs > 0 && finding.evidence.rows.size() < 5)
                finding.evidence.rows.push_back({"collective", task.collectiveId, rank.rank, fmt::format("others wait {:.3f} ms for rank {}", static_cast<double>(task.exposedWaitNs) / 1e6, rank.rank)});
        }
    }
}

}  // namespace

void detectUnevenWork(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    const std::vector<KernelRatio>& ratios = analysis.kernelRatios;
    for (const std::vector<size_t>& group : peerGroups(analysis)) {
        const Imbalance imbalance = imbalanceOf(analysis, group, ratios);
        if (median(imbalance.heaviestRatio) < kThresholds.ratio) continue;
        Finding finding;
        finding.id = "RS304";
        finding.ranks = heavyRanks(analysis, imbalance);
        if (finding.ranks.empty()) continue;
        const std::vector<double> costs = costsOf(analysis, imbalance);
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, finding.ranks.front(), finding);
        if (finding.severity < CommonThresholds::kNoteShare) continue;
        for (size_t i : group)
            if (std::find(finding.ranks.begin(), finding.ranks.end(), analysis.ranks[i].rank) == finding.ranks.end()) finding.affectedRanks.push_back(analysis.ranks[i].rank);
        finding.cause = fmt::format("{} {} more work than {} peers: the heaviest computes {:.2f}x the mean, in more or larger kernels, and the others wait for it", ranksText(analysis, finding.ranks),
                                    finding.ranks.size() == 1 ? "does" : "do", finding.ranks.size() == 1 ? "its" : "their", median(imbalance.heaviestRatio));
        addEvidence(analysis, imbalance, finding);
        const bool experts = exchangedBytes(analysis, analysis.ranks[group.front()]) > 0;
        finding.fix = experts ? std::vector<std::string>{"balance the experts: a load-balancing loss, a capacity factor (1.0 to 1.25), expert placement by measured load",
                                                         "drop-less routers with grouped kernels hide some of it, the exchange still waits for the fullest rank"}
                              : std::vector<std::string>{"sort or bucket samples by length, so that the ranks of a step get equal work; pack sequences",
                                                         "balance by tokens, not by samples, when batches are dealt to the ranks"};
        finding.confidence = 0.85;
        if (finding.verdict == Verdict::found) claims.takeWaiting(analysis, finding.id, finding.ranks, costs);
        findings.push_back(std::move(finding));
    }
}

}  // namespace rankscope::analyzer
