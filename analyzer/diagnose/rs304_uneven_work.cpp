// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/kernel_ratios.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::diagnose {
inline namespace rs304 {
namespace {

constexpr Threshold kRatio{"ratio", 1.03, "x the mean of the peers' compute",
                           "the floor, where compute is the whole step"};
constexpr Threshold kDifferentShare{"different share", 0.5,
                                    "of the excess in kernels that differ in number, shape or work",
                                    "else the device is slow (RS301)"};
constexpr Threshold kStepsShare{"steps share", 0.5, "of the steps in which a named rank is among the heaviest",
                                "with none, those that take turns are named"};

/// A rank's compute in one step, at the pace of its peers' devices.
struct Work {
    double totalNs = 0;
    double differentNs = 0;  // in kernels that not every peer runs as often in that shape, or that take longer here
                             // although the device is as fast
};

/// Ranks that would do the same work in a balanced job, as indices into analysis.ranks: one pipeline stage, or all.
std::vector<std::vector<size_t>> peerGroups(const job::Analysis& analysis) {
    std::map<int, std::vector<size_t>> byStage;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        byStage[analysis.layout.stageOf(analysis.ranks[r].rank)].push_back(r);
    std::vector<std::vector<size_t>> groups;
    for (auto& [stage, members] : byStage)
        if (members.size() > 1) groups.push_back(std::move(members));
    return groups;
}

/// Some kernels of the rank take longer in the same shape, most do not: they do more, as attention over longer
/// documents or experts with more tokens.
bool doesMoreInside(const job::KernelRatio& ratio) {
    return takesLonger(ratio) && !isSlow(ratio);
}

/// Kernels that all members of a group run as often, by the steps where that can be told of each one. Sums of steps are
/// cut where the host marks them, which the device reaches at another kernel on each rank: all steps together tell, but
/// for what one cut may take from one rank.
class SameKernels {
  public:
    SameKernels(const job::Analysis& analysis, const std::vector<size_t>& group)
        : m_isSummarised(isSummarised(analysis)) {
        std::map<std::pair<facts::KernelKey, int>, Counts> byKernel;
        for (size_t i = 0; i < group.size(); ++i)
            for (const facts::KernelStatistics& kernel : analysis.ranks[group[i]].kernels) {
                const int step = m_isSummarised ? 0 : kernel.step;
                if (m_isSummarised && !std::ranges::binary_search(analysis.steps, kernel.step)) continue;
                Counts& counts = byKernel[{kernel.key, step}];
                counts.byMember.resize(group.size());
                counts.byMember[i] += kernel.count;
                counts.mostInStep = std::max<int64_t>(counts.mostInStep, kernel.count);
            }
        for (const auto& [kernel, counts] : byKernel) {
            const auto [least, most] = std::ranges::minmax(counts.byMember);
            if (most - least <= (m_isSummarised && least > 0 ? counts.mostInStep : 0)) m_sames.insert(kernel);
        }
    }

    bool contains(const facts::KernelKey& key, int step) const {
        return m_sames.contains({key, m_isSummarised ? 0 : step});
    }

  private:
    struct Counts {
        std::vector<int64_t> byMember;
        int64_t mostInStep = 0;
    };
    bool m_isSummarised;
    std::set<std::pair<facts::KernelKey, int>> m_sames;  // kernels with their step; of sums of steps with 0
};

std::vector<Work> workOf(const job::Analysis& analysis, const std::vector<size_t>& group,
                         const std::vector<job::KernelRatio>& ratios, const SameKernels& sames, int step) {
    std::vector<Work> work(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
        const job::KernelRatio& ratio = ratios[group[i]];
        const bool moreInside = doesMoreInside(ratio);
        const double pace = ratio.comparedShare > 0.1 && ratio.ratio > 0 ? (moreInside ? ratio.pace : ratio.ratio) : 1;
        for (const facts::KernelStatistics& kernel : analysis.ranks[group[i]].kernels) {
            if (kernel.step != step) continue;
            const bool same = sames.contains(kernel.key, step);
            const double ns = static_cast<double>(kernel.totalNs) / pace;
            work[i].totalNs += ns;
            if (!same || (moreInside && ratio.slow.count(kernel.key) != 0)) work[i].differentNs += ns;
        }
    }
    return work;
}

double meanOf(const std::vector<Work>& work, double Work::*part) {
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

Imbalance imbalanceOf(const job::Analysis& analysis, const std::vector<size_t>& group,
                      const std::vector<job::KernelRatio>& ratios) {
    Imbalance result{group, {}, std::vector<int>(group.size(), 0), std::vector<std::vector<double>>(group.size())};
    const SameKernels sames(analysis, group);
    for (int step : analysis.steps) {
        const std::vector<Work> work = workOf(analysis, group, ratios, sames, step);
        const double mean = meanOf(work, &Work::totalNs), meanDifferent = meanOf(work, &Work::differentNs);
        const auto heaviest = std::max_element(work.begin(), work.end(),
                                               [](const Work& a, const Work& b) { return a.totalNs < b.totalNs; });
        const double excess = heaviest->totalNs - mean;
        const bool differs =
            heaviest->differentNs - meanDifferent >= kDifferentShare * excess && heaviest->differentNs > 0;
        result.heaviestRatio.push_back(differs && mean > 0 ? heaviest->totalNs / mean : 1);
        for (size_t i = 0; i < group.size(); ++i) {
            result.excessNs[i].push_back(differs ? work[i].totalNs - mean : 0);
            result.timesHeavy[i] += differs && work[i].totalNs - mean >= 0.5 * excess;
        }
    }
    return result;
}

std::vector<int> heavyRanks(const job::Analysis& analysis, const Imbalance& imbalance) {
    std::vector<int> always, sometimes;
    for (size_t i = 0; i < imbalance.group.size(); ++i) {
        const int rank = analysis.ranks[imbalance.group[i]].rank;
        if (imbalance.timesHeavy[i] >= kStepsShare * static_cast<double>(analysis.steps.size())) always.push_back(rank);
        if (imbalance.timesHeavy[i] > 0) sometimes.push_back(rank);
    }
    return always.empty() ? sometimes : always;
}

/// By step: what the heaviest computes beyond the mean, and no more than one of its peers stands still.
std::vector<double> costsOf(const job::Analysis& analysis, const Imbalance& imbalance) {
    std::vector<double> costs;
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        double excess = 0, standstill = 0;
        for (size_t i = 0; i < imbalance.group.size(); ++i) {
            excess = std::max(excess, imbalance.excessNs[i][s]);
            standstill = std::max(standstill,
                                  standstillNs(analysis, analysis.ranks[imbalance.group[i]].rank, analysis.steps[s]));
        }
        costs.push_back(std::min(excess, standstill));
    }
    return costs;
}

/// What the ranks of a group exchange all to all, as one operation or as grouped sends and receives.
enum class Exchange {
    none,
    tables,
    experts
};  // tables: it does not come in fours a layer, as dispatch and combine do (comm_usage.h)

Exchange exchangeOf(const job::Analysis& analysis, const facts::RankSummary& rank) {
    Exchange found = Exchange::none;
    for (const facts::CommTask& task : rank.communication) {
        if (task.step < 0 || analysis.layout.role(task) != facts::CommRole::experts) continue;
        if (analysis.layout.uses.at(task.communicatorId).at(task.op).confidence > 0.5) return Exchange::experts;
        found = Exchange::tables;
    }
    return found;
}

/// Bytes a rank exchanges all to all per step, sent and received, median; 0 where a size is unknown.
double exchangedBytes(const job::Analysis& analysis, const facts::RankSummary& rank) {
    std::vector<double> bytes;
    for (int step : analysis.steps) {
        double sum = 0;
        for (const facts::CommTask& task : analysis.tasks(rank, step)) {
            if (analysis.layout.role(task) != facts::CommRole::experts) continue;
            if (task.bytes < 0) return 0;
            sum += static_cast<double>(task.bytes);
        }
        bytes.push_back(sum);
    }
    return facts::median(bytes);
}

std::vector<std::string> fixFor(Exchange exchange) {
    if (exchange == Exchange::experts)
        return {
            "balance the experts: a load-balancing loss, a capacity factor (1.0 to 1.25), expert placement by measured "
            "load",
            "drop-less routers with grouped kernels hide some of it, the exchange still waits for the fullest rank"};
    if (exchange == Exchange::tables)
        return {
            "place what the ranks exchange by measured load, not by count: embedding tables by lookups and width, wide "
            "or hot ones split over ranks",
            "where batches are dealt to the ranks: balance by tokens or lookups, not by samples"};
    return {"sort or bucket samples by length, so that the ranks of a step get equal work; pack sequences",
            "balance by tokens, not by samples, when batches are dealt to the ranks"};
}

/// The kernels that make the difference, where they have the same shape on all ranks.
std::string moreInsideText(const job::Analysis& analysis, const job::KernelRatio& ratio) {
    const auto nameId = static_cast<size_t>(ratio.slowestKey.nameId);
    const std::string name = nameId < analysis.facts.strings.size()
                                 ? text::readableKernelName(analysis.facts.strings[nameId])
                                 : "some kernels";
    return fmt::format(
        "the device is as fast as its peers': most kernels take as long as theirs, but {} {:.2f}x as long in the same "
        "grid, so that it does more",
        name, ratio.slowestRatio);
}

void addEvidence(const job::Analysis& analysis, const Imbalance& imbalance, job::Finding& finding) {
    std::string list;
    for (size_t i = 0; i < imbalance.group.size() && i < 16; ++i)
        list += fmt::format("{}{}: {:+.1f}", i == 0 ? "" : ", ", analysis.ranks[imbalance.group[i]].rank,
                            facts::median(imbalance.excessNs[i]) / 1e6);
    finding.evidence.facts.push_back("compute over the mean of the peers, ms per step (median) by rank: " + list);
    finding.evidence.numbers.emplace_back("heaviest_over_mean", facts::median(imbalance.heaviestRatio));
    for (size_t i : imbalance.group) {
        const facts::RankSummary& rank = analysis.ranks[i];
        if (rank.rank != finding.ranks.front()) continue;
        if (doesMoreInside(analysis.kernelRatios[i]))
            finding.evidence.facts.push_back(moreInsideText(analysis, analysis.kernelRatios[i]));
        if (const double bytes = exchangedBytes(analysis, rank); bytes > 0) {
            std::vector<double> all;
            for (size_t peer : imbalance.group) all.push_back(exchangedBytes(analysis, analysis.ranks[peer]));
            finding.evidence.facts.push_back(
                fmt::format("rank {} exchanges {:.1f} MB all to all per step, the middle one of the peers {:.1f} MB",
                            rank.rank, bytes / 1e6, facts::median(all) / 1e6));
        }
        for (const facts::CommTask& task :
             analysis.ranks[i == imbalance.group.front() ? imbalance.group.back() : imbalance.group.front()]
                 .communication) {
            const bool shown = task.startNs >= finding.windowStartNs && task.startNs < finding.windowEndNs &&
                               task.lastRank == rank.rank && task.collectiveId != 0;
            if (shown && task.exposedWaitNs > 0 && finding.evidence.rows.size() < 5)
                finding.evidence.rows.push_back(
                    {"collective", task.collectiveId, rank.rank, "others wait " + waitText(task)});
        }
    }
}

void detectUnevenWork(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (analysis.facts.sharesDevices()) return;
    const std::vector<job::KernelRatio>& ratios = analysis.kernelRatios;
    for (const std::vector<size_t>& group : peerGroups(analysis)) {
        const Imbalance imbalance = imbalanceOf(analysis, group, ratios);
        if (facts::median(imbalance.heaviestRatio) < kRatio) continue;
        job::Finding finding;
        finding.id = "RS304";
        finding.ranks = heavyRanks(analysis, imbalance);
        if (finding.ranks.empty()) continue;
        const std::vector<double> costs = costsOf(analysis, imbalance);
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, finding.ranks.front(), finding);
        if (finding.severity < PriceThresholds::kNoteShare) continue;
        for (size_t i : group)
            if (std::find(finding.ranks.begin(), finding.ranks.end(), analysis.ranks[i].rank) == finding.ranks.end())
                finding.affectedRanks.push_back(analysis.ranks[i].rank);
        const bool moreInside = std::any_of(group.begin(), group.end(), [&](size_t i) {
            return analysis.ranks[i].rank == finding.ranks.front() && doesMoreInside(ratios[i]);
        });
        finding.cause = fmt::format(
            "{} {} more work than {} peers: the heaviest computes {:.2f}x the mean, in {}, and the others wait for it",
            ranksText(analysis, finding.ranks), finding.ranks.size() == 1 ? "does" : "do",
            finding.ranks.size() == 1 ? "its" : "their", facts::median(imbalance.heaviestRatio),
            moreInside ? "kernels whose work depends on the data" : "more or larger kernels");
        addEvidence(analysis, imbalance, finding);
        finding.fix = fixFor(exchangeOf(analysis, analysis.ranks[group.front()]));
        if (finding.verdict == job::Verdict::found) claims.takeWaiting(analysis, finding.id, finding.ranks, costs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForUnevenWork(const job::Analysis& analysis) {
    return withoutPeerRanks(analysis);
}

Changes evenWork(const job::Analysis&, const job::Finding&) {
    return {{"balance", {{"what", "work"}}}};
}

}  // namespace

const Diagnosis kUnevenWork{
    .id = "RS304",
    .title = "uneven work",
    .definition =
        "Ranks that should do the same do different amounts of work: more kernels, larger grids, or a few kernels that "
        "take longer in the same grid while most do not (sequence lengths, tokens per expert), and the others wait for "
        "the heaviest, always the same or another in each step. Compute is compared among ranks of one role: the ranks "
        "of a pipeline stage, or all. The saving is what the step is shorter when every peer has the mean of their "
        "work.",
    .thresholds = {kRatio, kDifferentShare, kStepsShare},
    .falsePositives =
        "Stages of a pipeline differ by design or by RS102: they are not compared. Ranks with an extra duty (logging, "
        "evaluation) show as uneven, rightly.",
    .fix =
        "Bucket or pack sequences by length; for experts a load-balancing loss and a capacity factor; embedding tables "
        "placed by their lookups.",
    .bySums = true,
    .hint =
        "Blue is of different length from rank to rank and step to step: they are given different amounts of work, and "
        "amber is the wait for the largest.",
    .detect = detectUnevenWork,
    .missing = missingForUnevenWork,
    .repair = evenWork,
};

}  // namespace rs304
}  // namespace rankscope::diagnose
