// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs405 {
namespace {

bool isPageable(const facts::HostStall& stall) {
    return stall.pageableCopy;
}

const facts::HostUse* useOf(const facts::RankSummary& rank, int step) {
    const auto use = std::lower_bound(rank.hostUse.begin(), rank.hostUse.end(), step,
                                      [](const facts::HostUse& u, int wanted) { return u.step < wanted; });
    return use != rank.hostUse.end() && use->step == step ? &*use : nullptr;
}

/// Bytes per ns of the run's own pinned copies; 0 when it has none.
double pinnedRate(const job::Analysis& analysis) {
    std::vector<double> rates;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::HostUse& use : rank.hostUse)
            if (use.pinned.deviceNs > 0)
                rates.push_back(static_cast<double>(use.pinned.bytes) / static_cast<double>(use.pinned.deviceNs));
    return facts::median(rates);
}

/// What a step does not need: the exposed copies, which pinned memory and a stream of their own hide under compute as
/// far as that reaches, and the idleness behind the calls that waited for them.
Stalled excessOf(const job::Analysis& analysis, const facts::RankSummary& rank, int step, double rate) {
    const facts::HostUse* use = useOf(rank, step);
    const facts::Attribution* attribution = analysis.attribution(rank, step);
    if (use == nullptr || use->pageable.count == 0 || attribution == nullptr) return {};
    const double remaining =
        std::max(0.0, static_cast<double>(use->pageable.bytes) / rate - static_cast<double>(attribution->computeNs));
    const double exposed = std::max(0.0, static_cast<double>(use->pageable.exposedNs) - remaining);
    // A rank that copies while it waits for others that copy, too, is the next to be waited for.
    const double uncovered = std::max(0.0, static_cast<double>(use->pageable.uncoveredNs) - remaining);
    return {exposed + stallSum(rank, step, isPageable).ns, uncovered - exposed};
}

void detectPageableCopies(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const double seen = pinnedRate(analysis);
    const double rate = seen > 0 ? seen : costs::kUnseenPinnedGbps;
    HostCost cost = hostCost(
        analysis, [&](const facts::RankSummary& rank, int step) { return excessOf(analysis, rank, step, rate); });
    job::Finding finding;
    finding.id = "RS405";
    if (!describeHostCost(analysis, cost, finding)) return;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    std::vector<double> count, bytes, gbps, exposed, blocking;
    for (int step : analysis.steps) {
        const facts::HostUse* use = useOf(worst, step);
        if (use == nullptr || use->pageable.count == 0) continue;
        const facts::CopyUse& copies = use->pageable;
        count.push_back(copies.count);
        bytes.push_back(static_cast<double>(copies.bytes));
        gbps.push_back(static_cast<double>(copies.bytes) / static_cast<double>(std::max<int64_t>(1, copies.deviceNs)));
        exposed.push_back(static_cast<double>(copies.exposedNs));
        blocking.push_back(copies.blocking);
        const facts::StepWindow* window = analysis.window(worst.rank, step);
        if (window != nullptr && window->startNs == finding.windowStartNs)
            finding.evidence.rows.push_back(
                {"memcpy", copies.longestId, worst.rank,
                 fmt::format("{:.3f} ms from or to pageable memory", static_cast<double>(copies.longestNs) / 1e6)});
    }
    finding.cause = fmt::format(
        "{} {} {:.1f} MB per step between the device and pageable memory, at {:.1f} GB/s where pinned memory {} {:.0f}",
        ranksText(analysis, finding.ranks), finding.ranks.size() == 1 ? "copies" : "copy", facts::median(bytes) / 1e6,
        facts::median(gbps), seen > 0 ? "reaches" : "would reach about", rate);
    finding.evidence.facts.push_back(
        fmt::format("{:.0f} {} over 64 KiB per step, {:.0f} blocking the host to the end; {:.2f} ms exposed (rank {})",
                    facts::median(count), facts::median(count) == 1 ? "copy" : "copies", facts::median(blocking),
                    facts::median(exposed) / 1e6, worst.rank));
    finding.evidence.numbers.emplace_back("pageable_bytes_per_step", facts::median(bytes));
    finding.evidence.numbers.emplace_back("pageable_gbps", facts::median(gbps));
    finding.evidence.numbers.emplace_back("pinned_gbps", rate);
    for (const facts::HostStall& stall : longestStalls(analysis, cost, finding, isPageable))
        if (finding.evidence.rows.size() < 5 && stall.callId != 0)
            finding.evidence.rows.push_back(
                {"api_call", stall.callId, worst.rank,
                 fmt::format("the device idles {:.3f} ms behind it", static_cast<double>(stall.stallNs) / 1e6)});
    finding.fix = {
        "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True); own buffers: cudaHostAlloc or "
        "torch.empty(..., pin_memory=True)",
        "copy the next batch on a stream of its own while this one computes",
    };
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForPageableCopies(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

Changes noPageable(const job::Analysis&, const job::Finding& f) {
    return noStalls("pageable", f);
}

}  // namespace

const Diagnosis kPageable{
    .id = "RS405",
    .title = "pageable copies",
    .definition =
        "Copies of more than 64 KiB between device and pageable host memory. The driver stages them piece by piece "
        "through pinned memory: they are slower, and the call returns only when they are done. Counted is their "
        "exposed time, as far as copies from pinned memory on a stream of their own would hide under the step's "
        "compute, and the idleness behind the calls.",
    .thresholds = {{"pinned rate", costs::kUnseenPinnedGbps, "GB/s, when the run has no pinned copy to compare with",
                    "PCIe 4.0 x16, the slowest host link of devices that train today"}},
    .falsePositives =
        "Small copies (a loss value) are staged at once and not counted. Traces whose copies do not tell the kind of "
        "memory show nothing.",
    .fix = "pin_memory, non_blocking, a copy stream of its own.",
    .hasSettings = true,
    .hint = "Framed are copies from pageable memory: slow, and the host stands still meanwhile.",
    .detect = detectPageableCopies,
    .missing = missingForPageableCopies,
    .repair = noPageable,
};

}  // namespace rs405
}  // namespace rankscope::diagnose
