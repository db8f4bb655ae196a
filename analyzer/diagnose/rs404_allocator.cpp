// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs404 {
namespace {

/// First uses allocate: whether they go on needs steps to tell, and whole steps.
bool tooFewSteps(const job::Analysis& analysis) {
    return static_cast<int>(analysis.steps.size()) < PriceThresholds::kFewestSteps || analysis.facts.wholeRunIsOneStep;
}

/// A pool that fills asks for less from step to step, one that is given back and filled again for the same: calls of
/// the later half of the steps, against those of the first half. A DDP job of convolutions called it 19, 6 and 2 times
/// in its first steps; half lies far from that, and far from what batches of unlike lengths make of equal halves.
constexpr double kStillFills = 0.5;

/// Whether the ranks call the allocator in most of the steps, but so much less in the later ones.
bool poolStillFills(const job::Analysis& analysis) {
    std::map<int, int64_t> calls;  // of all ranks, by step
    for (const int step : analysis.steps) calls[step] = 0;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::HostUse& use : rank.hostUse)
            if (const auto step = calls.find(use.step); step != calls.end()) step->second += use.allocatorCalls;
    std::vector<double> inOrder;
    for (const auto& [step, count] : calls) inOrder.push_back(static_cast<double>(count));
    const auto half = static_cast<std::ptrdiff_t>(inOrder.size() / 2);
    const double first = std::accumulate(inOrder.begin(), inOrder.begin() + half, 0.0);
    const double later = std::accumulate(inOrder.end() - half, inOrder.end(), 0.0);
    return later < kStillFills * first && facts::median(inOrder) > 0;
}

bool isAllocator(const facts::HostStall& stall) {
    return stall.cause == facts::IdleCause::allocator;
}

void detectAllocatorChurn(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (tooFewSteps(analysis) || poolStillFills(analysis)) return;
    HostCost cost =
        hostCost(analysis, [](const facts::RankSummary& rank, int step) { return stallSum(rank, step, isAllocator); });
    job::Finding finding;
    finding.id = "RS404";
    if (!describeHostCost(analysis, cost, finding)) return;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    std::vector<double> calls, spent;
    for (const facts::HostUse& use : worst.hostUse) {
        calls.push_back(use.allocatorCalls);
        spent.push_back(static_cast<double>(use.allocatorNs));
    }
    const std::vector<facts::HostStall> stalls = longestStalls(analysis, cost, finding, isAllocator);
    const std::string call = stalls.empty() ? "cudaFree" : nameOr(analysis, stalls[0].callNameId, "cudaFree");
    finding.cause = fmt::format(
        "{} call the device allocator {:.0f} times in every step, warm-up long over; {} waits for the device to drain, "
        "and it idles until the host has caught up",
        ranksText(analysis, finding.ranks), facts::median(calls), call);
    finding.evidence.facts.push_back(
        fmt::format("the device idles {:.2f} ms of a step behind allocator calls, which take {:.2f} ms of the host's "
                    "time (rank {})",
                    facts::median(cost.stallNs[cost.worst()]) / 1e6, facts::median(spent) / 1e6, worst.rank));
    finding.evidence.numbers.emplace_back("allocator_calls_per_step", facts::median(calls));
    finding.evidence.numbers.emplace_back("allocator_ns_per_step", facts::median(spent));
    for (const facts::HostStall& stall : stalls)
        if (finding.evidence.rows.size() < 5 && stall.callId != 0)
            finding.evidence.rows.push_back(
                {"api_call", stall.callId, worst.rank,
                 fmt::format("the device idles {:.3f} ms around it", static_cast<double>(stall.stallNs) / 1e6)});
    finding.fix = {
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; and lower the peak (smaller micro-batch, activation "
        "checkpointing), so that the pool is never given back",
        "own code: allocate once and reuse, or cudaMallocAsync with cudaMemPoolAttrReleaseThreshold raised; no "
        "torch.cuda.empty_cache() in the loop",
    };
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForAllocatorChurn(const job::Analysis& analysis) {
    const bool allocates =
        std::any_of(analysis.ranks.begin(), analysis.ranks.end(), [](const facts::RankSummary& rank) {
            return std::any_of(rank.hostStalls.begin(), rank.hostStalls.end(), isAllocator);
        });
    if (allocates && tooFewSteps(analysis)) return "too few whole steps: first uses allocate, too";
    if (allocates && poolStillFills(analysis))
        return "the allocator is called less from step to step, as by a pool that fills: more steps tell whether it "
               "goes "
               "on";
    return withoutHostCalls(analysis);
}

Changes noAllocator(const job::Analysis&, const job::Finding& f) {
    return noStalls("allocator", f);
}

}  // namespace

const Diagnosis kAllocator{
    .id = "RS404",
    .title = "allocator churn",
    .definition =
        "cudaMalloc and cudaFree in steps long after warm-up. Both take the host's time, and cudaFree waits for the "
        "device to finish: the device idles until the host has launched again. Counted is that idleness, not the "
        "calls.",
    .falsePositives =
        "Allocations in the first steps fill a caching allocator's pool: warm-up is left out, and nothing is said "
        "under "
        "three steps, or where they become fewer.",
    .fix = "expandable_segments, a larger or never released pool, a lower peak, buffers allocated once.",
    .hasSettings = true,
    .hint = "Framed are allocations and frees inside the step: each makes the GPU run dry (blank) until it is done.",
    .detect = detectAllocatorChurn,
    .missing = missingForAllocatorChurn,
    .repair = noAllocator,
};

}  // namespace rs404
}  // namespace rankscope::diagnose
