// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs403_input.h"

#include <fmt/format.h>

#include "analyzer/detectors/host_cost.h"
#include "analyzer/timeline/range_names.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

bool isInput(const HostStall& stall) { return stall.cause == IdleCause::input; }

}  // namespace

void detectInputStall(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    HostCost cost = hostCost(analysis, [](const RankSummary& rank, int step) { return stallSum(rank, step, isInput); });
    Finding finding;
    finding.id = "RS403";
    if (!describeHostCost(analysis, cost, finding)) return;
    const RankSummary& worst = analysis.ranks[cost.worst()];
    const std::vector<HostStall> stalls = longestStalls(analysis, cost, finding, isInput);
    std::string range = stalls.empty() ? "" : nameOr(analysis, stalls[0].rangeNameId, "");
    if (!namesDataLoading(range)) range.clear();
    const double perStep = median(cost.stallNs[cost.worst()]);
    finding.cause = fmt::format("the device of {} has nothing to do for {:.2f} ms of each step: the host {}", ranksText(analysis, finding.ranks), perStep / 1e6,
                                range.empty() ? "is not in CUDA when the step begins, as one that waits for its next batch" : "is in range '" + range + "'");
    finding.evidence.facts.push_back(fmt::format("rank {} idles {:.2f} ms of a step this way (median of {} steps)", worst.rank, perStep / 1e6, analysis.steps.size()));
    if (finding.ranks.size() < analysis.ranks.size())
        finding.evidence.facts.push_back(fmt::format("only {} stall; the others wait for them", ranksText(analysis, finding.ranks)));
    finding.evidence.numbers.emplace_back("stall_ns_per_step", perStep);
    addGapRows(worst, IdleCause::input, finding);
    finding.fix = {
        "more DataLoader workers and prefetching: num_workers=8, prefetch_factor=4, persistent_workers=True, pin_memory=True",
        "fetch the next batch while this one computes; move decoding and augmentation to the workers or to the device; faster storage",
    };
    finding.confidence = range.empty() ? 0.75 : 0.9;
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

}  // namespace rankscope::analyzer
