// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/job_failure.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs501 {

void tellMissing(const job::Analysis& analysis, const JobFailure& failure, job::Finding& finding) {
    const facts::RankEnd* rank = analysis.facts.end->find(failure.root.front());
    if (!rank) return;
    finding.cause = fmt::format("rank {}{} {}", rank->rank, rank->host.empty() ? "" : " (" + rank->host + ")",
                                endText(*rank, failure.stalledNs));
    if (failure.chain.empty()) {
        finding.cause += "; its launcher ended the others";
    } else {
        finding.cause +=
            fmt::format("; it did not come to {}, in which {} {}", callText(analysis, failure.chain.front().call),
                        text::ranksText(failure.waiting), failure.waiting.size() == 1 ? "waits" : "wait");
    }
    finding.evidence.facts = lastActs(analysis, *rank);
    finding.fix = fixesFor(*rank, failure.stalledNs);
}

void detect(const job::Analysis& analysis, Claims&, std::vector<job::Finding>& findings) {
    for (const JobFailure& failure : failuresOf(analysis)) {
        if (failure.kind != JobFailure::Kind::missing) continue;
        job::Finding finding;
        finding.id = "RS501";
        finding.ranks = failure.root;
        finding.affectedRanks = failure.waiting;
        if (!failure.chain.empty()) finding.communicator = failure.chain.back().call.communicator;
        if (analysis.facts.end->isRecorder) {
            finding.cause = recordedCause(analysis, failure);
            finding.evidence.facts = recordedFacts(analysis, failure);
            finding.fix = recordedFixes(analysis, failure);
        } else {
            tellMissing(analysis, failure, finding);
        }
        tellEnd(analysis, failure, finding);
        findings.push_back(std::move(finding));
    }
}

const Diagnosis kMissingRank{
    .id = "RS501",
    .title = "missing rank",
    .definition =
        "One rank did not come to a collective in which the others wait: it ran out of memory, ended by an "
        "error or a signal, or stands still somewhere else. The others, their time-outs and their aborts are "
        "its victims.",
    .thresholds = {{"least stall", FailureThresholds::kLeastStallNs / 1e9, "s",
                    "a job that somebody ended is judged when it had stood still for so long: healthy ranks are a part "
                    "of a step apart"},
                   {"stall over gap", FailureThresholds::kStallOverGap, "x",
                    "and for so many times the longest time that it ever took from one collective to the next"}},
    .falsePositives =
        "A rank that wrote a checkpoint while the others waited, when somebody ended the job; a rank "
        "whose recording ended early. In dumps of a flight recorder, which tell no time at which they were written: "
        "those "
        "of a job that got on, written on request while some ranks were a call ahead.",
    .fix = "Look at the rank that is missing: what it wrote, how it ended, where it stands.",
    .needs = Needs::events,
    .hint = "One rank's line ends or never enters where all others wait in the framed collective.",
    .detect = detect,
};

}  // namespace rs501
}  // namespace rankscope::diagnose
