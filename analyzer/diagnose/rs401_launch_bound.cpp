// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs401 {
namespace {

constexpr Threshold kFewestGaps{"fewest gaps", 20, "per step",
                                "a handful of late launches is something the host does there, not its pace"};
constexpr Threshold kLargestShare{"largest share", 0.5, "of the late time in one gap",
                                  "above it that one gap is the matter"};
constexpr Threshold kGapsShare{"gaps share", 0.1, "of the step's kernels",
                               "part of a step can be bound while the rest is not"};
constexpr Threshold kLongestGapMs{
    "longest gap", 1, "ms",
    "a launch takes 5 to 100 us with all that a framework does around it; in longer gaps the host does something else"};
constexpr Threshold kLaunchUs{
    "launch", 10, "us",
    "from a call to its kernel: gaps in which the host called communication are that storm's (RS202)"};
constexpr Threshold kKernelUs{
    "kernel", 100, "us",
    "behind a longer one than this in front of the gap the host was not late for its calls (5 to 50 us each)"};
constexpr auto kKernelNs = static_cast<int64_t>(1e3 * kKernelUs), kLaunchNs = static_cast<int64_t>(1e3 * kLaunchUs);

/// When the host had made its communication calls, by step, sorted.
std::map<int, std::vector<int64_t>> communicationCalls(const facts::RankSummary& rank) {
    std::map<int, std::vector<int64_t>> calls;
    for (const facts::CommTask& task : rank.communication)
        if (task.launchNs >= 0) calls[task.step].push_back(task.launchNs);
    for (auto& [step, times] : calls) std::sort(times.begin(), times.end());
    return calls;
}

/// The host called communication between the launches of the kernels around the gap: what many calls cost it is the
/// matter of their messages' size. A late kernel starts as it is launched, so that the one in front was launched where
/// the gap before it ended, at `previousEndNs`.
bool calledMeanwhile(const facts::HostStall& stall, int64_t previousEndNs,
                     const std::vector<int64_t>& communicationCalls) {
    const int64_t fromNs = std::max(previousEndNs, stall.startNs - kKernelNs) - kLaunchNs;
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
        return gaps >= kFewestGaps && largestNs <= kLargestShare * lateNs && gaps >= kGapsShare * kernels;
    }
};

using Paces = std::map<int, Pace>;  // by step

Paces pacesOf(const facts::RankSummary& rank) {
    Paces paces;
    std::map<int, std::vector<int64_t>> calls = communicationCalls(rank);
    std::map<int, int64_t> previousEndNs;
    for (const facts::HostStall& stall : rank.hostStalls) {
        if (stall.cause != facts::IdleCause::lateLaunch) continue;
        if (stall.pausedNs * 2 > stall.stallNs) continue;  // the host stood still: RS406
        Pace& pace = paces[stall.step];
        if (calledMeanwhile(stall, std::exchange(previousEndNs[stall.step], stall.endNs), calls[stall.step])) {
            pace.callingNs += static_cast<double>(stall.stallNs);
            continue;
        }
        if (static_cast<double>(stall.stallNs) > 1e6 * kLongestGapMs) continue;
        ++pace.gaps;
        pace.lateNs += static_cast<double>(stall.stallNs);
        pace.largestNs = std::max(pace.largestNs, static_cast<double>(stall.stallNs));
    }
    for (const facts::KernelStatistics& kernel : rank.kernels) {
        Pace& pace = paces[kernel.step];
        pace.kernels += kernel.count;
        pace.kernelNs += static_cast<double>(kernel.totalNs);
    }
    return paces;
}

/// Each rank whose own pace would cost its step as much as a finding must is bound, also where another one's is worse.
void nameAllBound(const job::Analysis& analysis, HostCost& cost) {
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (cost.medianStallNs[r] >= PriceThresholds::kFloorShare * analysis.stepNs &&
            std::find(cost.ranks.begin(), cost.ranks.end(), analysis.ranks[r].rank) == cost.ranks.end())
            cost.ranks.push_back(analysis.ranks[r].rank);
    std::sort(cost.ranks.begin(), cost.ranks.end());
}

void detectLaunchBound(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    std::vector<Paces> paces;  // by rank, as analysis.ranks
    for (const facts::RankSummary& rank : analysis.ranks) paces.push_back(pacesOf(rank));
    HostCost cost = hostCost(analysis, [&](const facts::RankSummary& rank, int step) {
        const Pace& pace = paces[static_cast<size_t>(&rank - analysis.ranks.data())][step];
        return pace.bound() ? Stalled{pace.lateNs} : Stalled{};
    });
    nameAllBound(analysis, cost);
    job::Finding finding;
    finding.id = "RS401";
    if (!describeHostCost(analysis, cost, finding)) return;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    std::vector<double> gaps, late, kernels, kernelNs;
    for (int step : analysis.steps) {
        const Pace& pace = paces[cost.worst()][step];
        gaps.push_back(pace.gaps);
        late.push_back(pace.lateNs / std::max(1, pace.gaps));
        kernels.push_back(pace.kernels);
        kernelNs.push_back(pace.kernelNs / std::max(1, pace.kernels));
    }
    finding.cause = fmt::format(
        "{} launch{} kernels more slowly than the device runs them: {:.0f} of {:.0f} kernels of a step start as soon "
        "as they are launched, and the device idles {:.1f} us in front of each",
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
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForLaunchBound(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

Changes graphs(const job::Analysis&, const job::Finding&) {
    return {{"graphs"}};
}

}  // namespace

const Diagnosis kLaunchBound{
    .id = "RS401",
    .title = "launch-bound",
    .definition =
        "The device idles while kernels start as soon as they are launched: many short kernels, and a host that cannot "
        "launch them as fast as they run. Counted is the time in which no kernel computes and the next one was "
        "submitted only after the device had run dry, waiting for other ranks left out. The saving is what the step is "
        "shorter when the launches are never late, on whichever rank then sets the pace.",
    .thresholds = {kFewestGaps, kLargestShare, kGapsShare, kLongestGapMs, kLaunchUs, kKernelUs},
    .falsePositives =
        "A profiler that records every call slows the host's launches: compare the step time with the unprofiled one. "
        "Launches that are late because the host had just synchronised are RS402, because it allocates RS404.",
    .fix = "CUDA graphs, torch.compile, fused kernels and optimizers, a larger micro-batch.",
    .hint =
        "Blank gaps between short kernels: the GPU waits for the host to launch the next one. Framed are such gaps.",
    .detect = detectLaunchBound,
    .missing = missingForLaunchBound,
    .repair = graphs,
};

}  // namespace rs401
}  // namespace rankscope::diagnose
