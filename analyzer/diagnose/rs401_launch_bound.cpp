// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/rs401_launch_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

constexpr LaunchBoundThresholds kThresholds;

/// When the host had made its communication calls of a step, sorted.
std::vector<int64_t> communicationCalls(const facts::RankSummary& rank, int step) {
    std::vector<int64_t> calls;
    for (const facts::CommTask& task : rank.communication)
        if (task.step == step && task.launchNs >= 0) calls.push_back(task.launchNs);
    std::sort(calls.begin(), calls.end());
    return calls;
}

/// The host called communication between the launches of the kernels around the gap: what many calls cost it is the
/// matter of their messages' size. A late kernel starts as it is launched, so that the one in front was launched where
/// the gap before it ended, at `previousEndNs`.
bool calledMeanwhile(const facts::HostStall& stall, int64_t previousEndNs,
                     const std::vector<int64_t>& communicationCalls) {
    const int64_t fromNs = std::max(previousEndNs, stall.startNs - kThresholds.kernelNs) - kThresholds.launchNs;
    const auto call = std::lower_bound(communicationCalls.begin(), communicationCalls.end(), fromNs);
    return call != communicationCalls.end() && *call <= stall.endNs;
}

/// The pace of one rank's host in one step.
struct Pace {
    int gaps = 0;
    double lateNs = 0;
    double largestNs = 0;
    double callingNs = 0;  // late with communication calls instead
    int kernels = 0;
    double kernelNs = 0;
    bool bound() const {
        if (callingNs > lateNs) return false;  // small kernels between many calls go when the calls do
        return gaps >= kThresholds.fewestGaps && largestNs <= kThresholds.largestShare * lateNs &&
               gaps >= kThresholds.gapsShare * kernels;
    }
};

Pace paceOf(const facts::RankSummary& rank, int step) {
    Pace pace;
    const std::vector<int64_t> calls = communicationCalls(rank, step);
    int64_t previousEndNs = 0;
    for (const facts::HostStall& stall : rank.hostStalls) {
        if (stall.step != step || stall.cause != facts::IdleCause::lateLaunch) continue;
        if (stall.pausedNs * 2 > stall.stallNs) continue;  // the host stood still: RS406
        if (calledMeanwhile(stall, std::exchange(previousEndNs, stall.endNs), calls)) {
            pace.callingNs += static_cast<double>(stall.stallNs);
            continue;
        }
        if (stall.stallNs > kThresholds.longestGapNs) continue;
        ++pace.gaps;
        pace.lateNs += static_cast<double>(stall.stallNs);
        pace.largestNs = std::max(pace.largestNs, static_cast<double>(stall.stallNs));
    }
    for (const facts::KernelStatistics& kernel : rank.kernels) {
        if (kernel.step != step) continue;
        pace.kernels += kernel.count;
        pace.kernelNs += static_cast<double>(kernel.totalNs);
    }
    return pace;
}

/// Each rank whose own pace would cost its step as much as a finding must is bound, also where another one's is worse.
void nameAllBound(const job::Analysis& analysis, HostCost& cost) {
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (cost.medianStallNs[r] >= CommonThresholds::kFloorShare * analysis.stepNs &&
            std::find(cost.ranks.begin(), cost.ranks.end(), analysis.ranks[r].rank) == cost.ranks.end())
            cost.ranks.push_back(analysis.ranks[r].rank);
    std::sort(cost.ranks.begin(), cost.ranks.end());
}

}  // namespace

void detectLaunchBound(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    HostCost cost = hostCost(analysis, [](const facts::RankSummary& rank, int step) {
        const Pace pace = paceOf(rank, step);
        return pace.bound() ? Stalled{pace.lateNs, pace.gaps} : Stalled{};
    });
    nameAllBound(analysis, cost);
    job::Finding finding;
    finding.id = "RS401";
    if (!describeHostCost(analysis, cost, finding)) return;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    std::vector<double> gaps, late, kernels, kernelNs;
    for (int step : analysis.steps) {
        const Pace pace = paceOf(worst, step);
        gaps.push_back(pace.gaps);
        late.push_back(pace.lateNs / std::max(1, pace.gaps));
        kernels.push_back(pace.kernels);
        kernelNs.push_back(pace.kernelNs / std::max(1, pace.kernels));
    }
    finding.cause = fmt::format(
        "{} launch{} kernels more slowly than the device runs them: {:.0f} of {:.0f} kernels of a step start as soon "
        "as they are launched, and the "
        "device idles {:.1f} us in front of each",
        ranksText(analysis, finding.ranks), finding.ranks.size() == 1 ? "es" : "",
        std::min(facts::median(gaps), facts::median(kernels)), facts::median(kernels), facts::median(late) / 1e3);
    finding.evidence.facts.push_back(
        fmt::format("a kernel runs {:.1f} us on average (rank {})", facts::median(kernelNs) / 1e3, worst.rank));
    finding.evidence.facts.push_back(fmt::format("the device idles {:.2f} ms of a step between launches",
                                                 facts::median(cost.stallNs[cost.worst()]) / 1e6));
    finding.evidence.numbers.emplace_back("late_launches_per_step", facts::median(gaps));
    finding.evidence.numbers.emplace_back("kernels_per_step", facts::median(kernels));
    finding.evidence.numbers.emplace_back("mean_kernel_ns", facts::median(kernelNs));
    addGapRows(worst, facts::IdleCause::lateLaunch, finding);
    finding.fix = {
        "capture the step in a CUDA graph (torch.cuda.make_graphed_callables, torch.compile(mode='reduce-overhead')): "
        "one launch instead of thousands",
        "fewer, larger kernels: torch.compile or fused kernels, fused optimizer (fused=True), a larger micro-batch",
    };
    finding.confidence = 0.85;
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForLaunchBound(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

}  // namespace rankscope::diagnose
