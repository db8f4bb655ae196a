// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs403 {
namespace {

bool isInput(const facts::HostStall& stall) {
    return stall.cause == facts::IdleCause::input;
}

std::string whatTheHostDoes(const std::string& range) {
    return range.empty() ? "is not in CUDA when the step begins, as one that waits for its next batch"
                         : "is in '" + range + "'";
}

void detectInputStall(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    HostCost cost =
        hostCost(analysis, [](const facts::RankSummary& rank, int step) { return stallSum(rank, step, isInput); });
    job::Finding finding;
    finding.id = "RS403";
    const bool typical = describeHostCost(analysis, cost, finding);
    // A loader that is late now and then leaves the middle step alone.
    if (!typical || finding.verdict == job::Verdict::note) {
        HostCost rare = cost;
        job::Finding intermittent;
        intermittent.id = finding.id;
        if (describeIntermittentCost(analysis, rare, intermittent)) {
            cost = std::move(rare);
            finding = std::move(intermittent);
        } else if (!typical) {
            return;
        }
    }
    const bool everyStep = finding.meanStepNs <= 0;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    const std::vector<facts::HostStall> stalls = longestStalls(analysis, cost, finding, isInput);
    std::string range = stalls.empty() ? "" : nameOr(analysis, stalls[0].rangeNameId, "");
    if (!facts::namesDataLoading(range)) range.clear();
    const double perStep = cost.medianStallNs[cost.worst()];
    if (everyStep) {
        finding.cause = fmt::format("the device of {} has nothing to do for {:.2f} ms of each step: the host {}",
                                    ranksText(analysis, finding.ranks), perStep / 1e6, whatTheHostDoes(range));
        finding.evidence.facts.push_back(fmt::format("rank {} idles {:.2f} ms of a step this way (median of {} step{})",
                                                     worst.rank, perStep / 1e6, analysis.steps.size(),
                                                     analysis.steps.size() == 1 ? "" : "s"));
    } else {
        std::vector<double> hit;
        for (size_t s = 0; s < analysis.steps.size(); ++s)
            if (std::binary_search(finding.steps.begin(), finding.steps.end(), analysis.steps[s]))
                hit.push_back(cost.stallNs[cost.worst()][s]);
        finding.cause = fmt::format(
            "in {} of {} steps the device of {} has nothing to do for {:.0f} to {:.0f} ms: the host {}", hit.size(),
            analysis.steps.size(), ranksText(analysis, finding.ranks), *std::min_element(hit.begin(), hit.end()) / 1e6,
            *std::max_element(hit.begin(), hit.end()) / 1e6, whatTheHostDoes(range));
        finding.evidence.facts.push_back(fmt::format(
            "rank {} idles {:.2f} ms of a step this way on average over all {} steps, which take {:.1f} ms on average",
            worst.rank, perStep / 1e6, analysis.steps.size(), finding.meanStepNs / 1e6));
        finding.evidence.numbers.emplace_back("steps_hit", static_cast<double>(hit.size()));
    }
    if (finding.ranks.size() < analysis.ranks.size())
        finding.evidence.facts.push_back(
            fmt::format("only {} {}; the others wait for {}", ranksText(analysis, finding.ranks),
                        finding.ranks.size() == 1 ? "stalls" : "stall", finding.ranks.size() == 1 ? "it" : "them"));
    finding.evidence.numbers.emplace_back("stall_ns_per_step", perStep);
    addGapRows(worst, facts::IdleCause::input, finding);
    finding.fix = {
        "more DataLoader workers and prefetching: num_workers=8, prefetch_factor=4, persistent_workers=True, "
        "pin_memory=True",
        "fetch the next batch while this one computes; move decoding and augmentation to the workers or to the device; "
        "faster storage",
    };
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForInputStall(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

Changes noInputStall(const job::Analysis&, const job::Finding& f) {
    return noStalls("input", f);
}

}  // namespace

const Diagnosis kInput{
    .id = "RS403",
    .title = "input stall",
    .definition =
        "The device idles while the host is inside a range or an operation that names data loading (DataLoader, "
        "next_batch, data, input…), wherever that lies; or, where the recording does not tell what hosts did besides "
        "calls of CUDA, at the start of the step while the host makes none. On one rank or on all: ranks that stall "
        "are named, the others wait for them. Where some steps alone are hit, the mean over all counts.",
    .falsePositives =
        "Host work at the start of a step that is no data loading (logging, a scheduler) looks the same without "
        "ranges: mark data loading with an NVTX range. The lower end of the saving is with workers that take cores "
        "from the process that launches, and hand over memory that it has to map.",
    .fix = "More workers, prefetching, pinned memory, faster storage or decoding.",
    .hint =
        "Blank at the start of the step, with no CUDA call on the host lanes: the next batch is not there yet. Framed "
        "are such gaps.",
    .detect = detectInputStall,
    .missing = missingForInputStall,
    .repair = noInputStall,
};

}  // namespace rs403
}  // namespace rankscope::diagnose
