// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/host_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

constexpr double kNamedShare = 0.5;     // of the worst rank's stall: whoever stalls less is not where the fix goes
constexpr double kWaitingShare = 0.25;  // of the cost: whoever waits less is not worth naming as affected

/// How much earlier the last rank is done at most, ns, when each rank of analysis.ranks needs lessNs less of its own
/// time.
double earlierNs(const job::Analysis& analysis, int step, const std::vector<double>& lessNs) {
    double before = 0, after = 0, most = 0;
    for (size_t r = 0; r < analysis.ranks.size(); ++r) {
        const double own = ownTimeNs(analysis, analysis.ranks[r], step);
        before = std::max(before, own);
        after = std::max(after, own - lessNs[r]);
        most = std::max(most, lessNs[r]);
    }
    return std::clamp(before - after, 0.0, most);
}

}  // namespace

double ownTimeNs(const job::Analysis& analysis, const facts::RankSummary& rank, int step) {
    const facts::Attribution* attribution = analysis.attribution(rank, step);
    return attribution == nullptr ? 0 : static_cast<double>(attribution->stepNs - attribution->exposedWaitNs);
}

size_t HostCost::worst() const {
    return static_cast<size_t>(std::max_element(medianStallNs.begin(), medianStallNs.end()) - medianStallNs.begin());
}

HostCost hostCost(const job::Analysis& analysis,
                  const std::function<Stalled(const facts::RankSummary&, int step)>& stallOf) {
    HostCost cost;
    cost.stallNs.resize(analysis.ranks.size());
    std::vector<std::vector<double>> withHidden(analysis.ranks.size());
    for (int step : analysis.steps) {
        std::vector<double> stalls;
        for (size_t r = 0; r < analysis.ranks.size(); ++r) {
            const Stalled stalled = stallOf(analysis.ranks[r], step);
            stalls.push_back(std::min(stalled.ns, ownTimeNs(analysis, analysis.ranks[r], step)));
            withHidden[r].push_back(stalls.back() + stalled.hiddenNs);
        }
        for (size_t r = 0; r < analysis.ranks.size(); ++r) cost.stallNs[r].push_back(stalls[r]);
        cost.costNs.push_back(earlierNs(analysis, step, stalls));
    }
    for (const std::vector<double>& stalls : cost.stallNs) cost.medianStallNs.push_back(facts::median(stalls));
    const double most = cost.medianStallNs.empty() ? 0 : cost.medianStallNs[cost.worst()];
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (most > 0 && facts::median(withHidden[r]) >= kNamedShare * most)
            cost.ranks.push_back(analysis.ranks[r].rank);
    return cost;
}

Stalled stallSum(const facts::RankSummary& rank, int step, const StallTest& wanted) {
    Stalled sum;
    for (const facts::HostStall& stall : rank.hostStalls) {
        if (stall.step != step || !wanted(stall)) continue;
        sum.ns += static_cast<double>(stall.stallNs);
    }
    return sum;
}

std::vector<facts::HostStall> longestStalls(const job::Analysis& analysis, const HostCost& cost,
                                            const job::Finding& finding, const StallTest& wanted) {
    std::vector<facts::HostStall> stalls;
    for (const facts::HostStall& stall : analysis.ranks[cost.worst()].hostStalls)
        if (stall.startNs < finding.windowEndNs && stall.endNs > finding.windowStartNs && wanted(stall))
            stalls.push_back(stall);
    std::stable_sort(stalls.begin(), stalls.end(),
                     [](const facts::HostStall& a, const facts::HostStall& b) { return a.stallNs > b.stallNs; });
    return stalls;
}

bool describeHostCost(const job::Analysis& analysis, const HostCost& cost, job::Finding& finding) {
    if (cost.ranks.empty() || facts::median(cost.costNs) <= 0) return false;
    finding.ranks = cost.ranks;
    setCost(analysis, cost.costNs, finding);
    setTypicalStep(analysis, cost.costNs, analysis.ranks[cost.worst()].rank, finding);
    if (finding.severity < PriceThresholds::kNoteShare) return false;
    for (const facts::RankSummary& rank : analysis.ranks) {
        if (std::find(cost.ranks.begin(), cost.ranks.end(), rank.rank) != cost.ranks.end()) continue;
        std::vector<double> waits;
        for (int step : analysis.steps)
            if (const facts::Attribution* attribution = analysis.attribution(rank, step))
                waits.push_back(static_cast<double>(attribution->exposedWaitNs));
        if (facts::median(waits) > kWaitingShare * finding.costNs) finding.affectedRanks.push_back(rank.rank);
    }
    return true;
}

bool describeIntermittentCost(const job::Analysis& analysis, HostCost& cost, job::Finding& finding) {
    const auto steps = static_cast<double>(analysis.steps.size());
    if (steps <= 0) return false;
    const auto meanOf = [steps](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0) / steps;
    };
    job::Finding described = finding;
    setMeanCost(analysis, meanOf(cost.costNs), described);
    std::vector<size_t> hit;
    for (size_t s = 0; s < cost.costNs.size(); ++s)
        if (cost.costNs[s] >= PriceThresholds::kFloorShare * analysis.stepNs) hit.push_back(s);
    if (described.verdict == job::Verdict::note || static_cast<int>(hit.size()) < PriceThresholds::kFewestSteps)
        return false;
    std::vector<double> means;
    for (const std::vector<double>& stalls : cost.stallNs) means.push_back(meanOf(stalls));
    const double most = *std::max_element(means.begin(), means.end());
    if (most <= 0) return false;
    cost.medianStallNs = std::move(means);
    cost.ranks.clear();
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        (cost.medianStallNs[r] >= kNamedShare * most ? cost.ranks : described.affectedRanks)
            .push_back(analysis.ranks[r].rank);
    described.ranks = cost.ranks;
    std::stable_sort(hit.begin(), hit.end(), [&](size_t a, size_t b) { return cost.costNs[a] < cost.costNs[b]; });
    // The middle one of those hit shows it best.
    if (const facts::StepWindow* window =
            analysis.window(analysis.ranks[cost.worst()].rank, analysis.steps[hit[hit.size() / 2]])) {
        described.windowStartNs = window->startNs;
        described.windowEndNs = window->startNs + window->durNs;
    }
    for (size_t s : hit) described.steps.push_back(analysis.steps[s]);
    std::sort(described.steps.begin(), described.steps.end());
    finding = std::move(described);
    return true;
}

void addGapRows(const facts::RankSummary& rank, facts::IdleCause cause, job::Finding& finding) {
    std::vector<facts::IdleGap> gaps;
    for (const facts::IdleGap& gap : rank.idleGaps)
        if (gap.cause == cause && gap.startNs >= finding.windowStartNs && gap.startNs < finding.windowEndNs)
            gaps.push_back(gap);
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const facts::IdleGap& a, const facts::IdleGap& b) { return a.durNs > b.durNs; });
    for (const facts::IdleGap& gap : gaps)
        if (finding.evidence.rows.size() < 5)
            finding.evidence.rows.push_back({"idle_gap", gap.id, rank.rank,
                                             fmt::format("idle for {:.3f} ms", static_cast<double>(gap.durNs) / 1e6)});
}

void claimHostCost(const job::Analysis& analysis, const HostCost& cost, const job::Finding& finding, Claims& claims) {
    if (finding.verdict != job::Verdict::found) return;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        for (size_t s = 0; s < analysis.steps.size(); ++s)
            claims.take(finding.id, analysis.ranks[r].rank, analysis.steps[s], cost.stallNs[r][s]);
    claims.takeWaiting(analysis, finding.id, finding.ranks, cost.costNs);
}

double claimedByHostNs(const Claims& claims, int rank, int step) {
    double sum = 0;
    for (const Diagnosis* diagnosis : diagnoses())
        if (familyOf(diagnosis->id) == Family::host) sum += claims.explainedBy(diagnosis->id, rank, step);
    return sum;
}

std::string ranksText(const job::Analysis& analysis, const std::vector<int>& ranks) {
    if (ranks.size() > 1 && ranks.size() == analysis.ranks.size()) return "all ranks";
    std::string text;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (!text.empty()) text += ", ";
        text += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
        i = last + 1;
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string nameOr(const job::Analysis& analysis, int32_t nameId, const std::string& fallback) {
    const auto id = static_cast<size_t>(nameId);
    return nameId > 0 && id < analysis.facts.strings.size() ? analysis.facts.strings[id] : fallback;
}

std::string withoutNumber(std::string name) {
    const size_t last = name.find_last_not_of("0123456789");
    if (last == std::string::npos || last + 1 == name.size()) return name;
    const size_t end = name.find_last_not_of(" #_:-", last);
    return end == std::string::npos ? name : name.substr(0, end + 1);
}

}  // namespace rankscope::diagnose
