// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/loss_kinds.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::diagnose {
namespace {

/// A loss touches a claim when it may be anywhere, or lies on a rank that the claim names or communicates with.
bool touches(const store::Loss& loss, const job::Analysis& analysis, const job::Finding& finding) {
    if (!loss.rank) return true;
    const auto holds = [&loss](const std::vector<int>& ranks) {
        return std::find(ranks.begin(), ranks.end(), *loss.rank) != ranks.end();
    };
    if (holds(finding.ranks) || holds(finding.affectedRanks)) return true;
    const auto communicator = finding.communicator ? analysis.facts.communicators.find(*finding.communicator)
                                                   : analysis.facts.communicators.end();
    return communicator != analysis.facts.communicators.end() && holds(communicator->second.ranks);
}

/// The group whose size a claim counts on is not in the trace: as many ranks as the job has, or the call says, are
/// taken for it.
void tellAssumedGroup(const job::Analysis& analysis, job::Finding& finding) {
    const auto communicator = finding.communicator ? analysis.facts.communicators.find(*finding.communicator)
                                                   : analysis.facts.communicators.end();
    if (communicator == analysis.facts.communicators.end() || communicator->second.identity != "assumed") return;
    finding.evidence.facts.push_back("assumed: communicator " + std::to_string(communicator->first) +
                                     " is one group of " + std::to_string(communicator->second.size) +
                                     " ranks on one stream; the trace of one rank does not tell its groups");
}

/// Says in the evidence what may be wrong with any claim: a group that is assumed, records that are missing.
void tellDoubts(const job::Analysis& analysis, job::Finding& finding) {
    tellAssumedGroup(analysis, finding);
    for (const store::Loss& loss : analysis.facts.losses) {
        if (loss.severity == store::Severity::info || !facts::isOfMissingRecords(loss.kind)) continue;
        if (!touches(loss, analysis, finding)) continue;
        finding.evidence.facts.push_back("records are missing" +
                                         (loss.rank ? " on rank " + std::to_string(*loss.rank) : std::string()) +
                                         ", as the report's warnings tell: what it says may be off");
        break;
    }
}

/// What the diagnosis needs and a light recording lacks; empty where it lacks nothing.
std::string lackedByLight(const Diagnosis& diagnosis, const job::Analysis& analysis) {
    if (!isLight(analysis) || diagnosis.byCalls || diagnosis.needs != Needs::steps) return {};
    if (isByCalls(analysis)) {
        const std::string open = diagnosis.openByCalls ? diagnosis.openByCalls(analysis) : std::string();
        return "no kernels were recorded: light mode" + (open.empty() ? open : "; " + open);
    }
    return diagnosis.bySums ? "" : "kernels were recorded as summaries of steps: light mode";
}

/// Without steps nothing can be said of what they lose, and the report says why there are none.
bool canBeAsked(const Diagnosis& diagnosis, const job::Analysis& analysis) {
    if (familyOf(diagnosis.id) != Family::hang && !whyOnlyTheEnd(analysis).empty()) return false;
    if (!lackedByLight(diagnosis, analysis).empty()) return false;
    return diagnosis.needs == Needs::events || (!analysis.steps.empty() && analysis.stepNs > 0);
}

/// "straggler rank, or uneven work (RS304)".
std::string titleOf(const Diagnosis& diagnosis, const std::vector<std::string>& alternatives) {
    std::string title = diagnosis.title;
    for (const std::string& id : alternatives)
        if (const Diagnosis* other = findDiagnosis(id)) title += fmt::format(", or {} ({})", other->title, id);
    return title;
}

}  // namespace

std::string whyOnlyTheEnd(const job::Analysis& analysis) {
    if (analysis.facts.end && analysis.facts.end->isRecorder)
        return "dumps of a flight recorder hold the last calls of collectives and how far they got, no device activity "
               "and nothing of the host";
    if (std::ranges::any_of(analysis.facts.losses,
                            [](const store::Loss& loss) { return loss.kind == facts::kRecordingsApart; }))
        return "the ranks were recorded at different times: import those of one run by themselves";
    return {};
}

std::vector<job::Finding> detect(const job::Analysis& analysis) {
    Claims claims;
    return detect(analysis, claims);
}

std::vector<NotJudged> notJudged(const job::Analysis& analysis) {
    std::vector<NotJudged> result;
    if (const std::string why = whyOnlyTheEnd(analysis); !why.empty()) {
        for (const Diagnosis* diagnosis : diagnoses())
            if (familyOf(diagnosis->id) != Family::hang) result.push_back({diagnosis->id, why});
        std::ranges::sort(result, {}, &NotJudged::id);
        return result;
    }
    for (const Diagnosis* diagnosis : diagnoses()) {
        if (std::string lacked = lackedByLight(*diagnosis, analysis); !lacked.empty()) {
            result.push_back({diagnosis->id, std::move(lacked)});
            continue;
        }
        if (diagnosis->missing == nullptr || !canBeAsked(*diagnosis, analysis)) continue;
        if (std::string needs = diagnosis->missing(analysis); !needs.empty())
            result.push_back({diagnosis->id, std::move(needs)});
    }
    std::stable_sort(result.begin(), result.end(), [](const NotJudged& a, const NotJudged& b) { return a.id < b.id; });
    return result;
}

std::vector<job::Finding> detect(const job::Analysis& analysis, Claims& claims) {
    return detectThose(diagnoses(), analysis, claims);
}

std::vector<job::Finding> detectThose(std::span<const Diagnosis* const> table, const job::Analysis& analysis,
                                      Claims& claims) {
    std::vector<job::Finding> findings;
    for (const Diagnosis* diagnosis : table)
        if (diagnosis->detect != nullptr && canBeAsked(*diagnosis, analysis))
            diagnosis->detect(analysis, claims, findings);
    // What costs little and rests on a step or two is not even worth a note.
    if (static_cast<int>(analysis.steps.size()) < PriceThresholds::kFewestSteps)
        std::erase_if(findings, [](const job::Finding& finding) {
            return finding.verdict == job::Verdict::note && finding.severity < PriceThresholds::kFloorShare;
        });
    for (job::Finding& finding : findings) {
        const auto diagnosis = std::ranges::find_if(table, [&](const Diagnosis* one) { return finding.id == one->id; });
        if (diagnosis != table.end()) finding.title = titleOf(**diagnosis, finding.alternatives);
        if (diagnosis == table.end() || (*diagnosis)->needs == Needs::steps) doubtFewSteps(analysis, finding);
        if (familyOf(finding.id) != Family::hang) tellDoubts(analysis, finding);  // what is missing is the finding
    }
    sortByWorth(findings);
    return findings;
}

void setTypicalStep(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, int rank,
                    job::Finding& finding, size_t firstStep) {
    const auto first = static_cast<std::ptrdiff_t>(firstStep);
    finding.steps.assign(analysis.steps.begin() + first, analysis.steps.end());
    const double typical = facts::median({costPerStepNs.begin() + first, costPerStepNs.end()});
    size_t best = firstStep;
    for (size_t i = firstStep + 1; i < costPerStepNs.size() && i < analysis.steps.size(); ++i)
        if (std::abs(costPerStepNs[i] - typical) < std::abs(costPerStepNs[best] - typical)) best = i;
    if (const facts::StepWindow* window = analysis.window(rank, analysis.steps[best])) {
        finding.windowStartNs = window->startNs;
        finding.windowEndNs = window->startNs + window->durNs;
    }
}

}  // namespace rankscope::diagnose
