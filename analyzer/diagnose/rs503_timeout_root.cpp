// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/job_failure.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs503 {

std::string cycleText(const job::Analysis& analysis, const JobFailure& failure) {
    std::vector<std::string> waits;
    for (const Wait& wait : failure.chain) waits.push_back(waitText(analysis, wait));
    std::vector<int> all = failure.root;
    if (all.size() == 1) all.insert(all.end(), failure.waiting.begin(), failure.waiting.end());
    std::ranges::sort(all);
    return fmt::format("{} wait for each other in a circle{}: {}", text::ranksText(all),
                       failure.root.size() == 1 ? fmt::format(", always over rank {}", failure.root.front()) : "",
                       text::joined(waits, "; "));
}

void tellRoot(const job::Analysis& analysis, const JobFailure& failure, job::Finding& finding) {
    const facts::RankEnd* rank = analysis.facts.end->find(failure.root.front());
    if (!rank) return;
    finding.cause = fmt::format("rank {}{} {}; {} {} for it, directly or through others", rank->rank,
                                rank->host.empty() ? "" : " (" + rank->host + ")", endText(*rank, failure.stalledNs),
                                text::ranksText(failure.waiting), failure.waiting.size() == 1 ? "waits" : "wait");
    finding.evidence.facts = lastActs(analysis, *rank);
    finding.fix = fixesFor(*rank, failure.stalledNs);
}

void tellCycle(const job::Analysis& analysis, const JobFailure& failure, job::Finding& finding) {
    finding.cause = cycleText(analysis, failure);
    finding.fix = {
        "have all ranks call the collectives of the two groups in one order, or wait for the one on the "
        "host before the other is called"};
    for (const int rank : text::first(failure.root, 4))
        if (const facts::RankEnd* known = analysis.facts.end->find(rank))
            for (std::string& act : lastActs(analysis, *known)) finding.evidence.facts.push_back(std::move(act));
}

void detect(const job::Analysis& analysis, Claims&, std::vector<job::Finding>& findings) {
    for (const JobFailure& failure : failuresOf(analysis)) {
        const bool cycle = failure.kind == JobFailure::Kind::cycle;
        if (!cycle && failure.kind != JobFailure::Kind::chain) continue;
        job::Finding finding;
        finding.id = "RS503";
        finding.ranks = failure.root;
        finding.affectedRanks = failure.waiting;
        if (!failure.chain.empty()) finding.communicator = failure.chain.back().call.communicator;
        if (cycle && failure.trace != JobFailure::Trace::transfer) {
            tellCycle(analysis, failure, finding);
        } else if (analysis.facts.end->isRecorder) {
            finding.cause = recordedCause(analysis, failure);
            finding.evidence.facts = recordedFacts(analysis, failure);
            finding.fix = recordedFixes(analysis, failure);
        } else {
            tellRoot(analysis, failure, finding);
            for (const Wait& wait : text::first(failure.chain, 12))
                finding.evidence.facts.push_back(waitText(analysis, wait));
        }
        tellEnd(analysis, failure, finding);
        findings.push_back(std::move(finding));
    }
}

const Diagnosis kTimeoutRoot{
    .id = "RS503",
    .title = "root cause behind a time-out",
    .definition =
        "Ranks wait for ranks that wait themselves, over several communicators or in messages: followed to "
        "its end, the waiting leads to one rank that waits for nobody, or round in a circle.",
    .thresholds = {{"least stall", FailureThresholds::kLeastStallNs / 1e9, "s", "as of a missing rank"},
                   {"stall over gap", FailureThresholds::kStallOverGap, "x", "as of a missing rank"}},
    .falsePositives = "As of a missing rank.",
    .fix = "Look at the rank that waits for nobody, not at those whose time-outs are reported.",
    .needs = Needs::events,
    .hint = "Follow the framed calls from rank to rank: the last one's line ends for another reason.",
    .detect = detect,
};

}  // namespace rs503
}  // namespace rankscope::diagnose
