// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/diagnose/catalogue.h"
#include "analyzer/diagnose/detector.h"
#include "analyzer/diagnose/rs101_bubble.h"
#include "analyzer/diagnose/rs102_stage_imbalance.h"
#include "analyzer/diagnose/rs103_p2p_exposed.h"
#include "analyzer/diagnose/rs201_overlap.h"
#include "analyzer/diagnose/rs202_small_messages.h"
#include "analyzer/diagnose/rs203_saturation.h"
#include "analyzer/diagnose/rs204_under_used_link.h"
#include "analyzer/diagnose/rs205_algorithm.h"
#include "analyzer/diagnose/rs206_redundant.h"
#include "analyzer/diagnose/rs207_tensor_parallel_span.h"
#include "analyzer/diagnose/rs208_slow_link.h"
#include "analyzer/diagnose/rs209_contention.h"
#include "analyzer/diagnose/rs210_full_precision.h"
#include "analyzer/diagnose/rs301_straggler.h"
#include "analyzer/diagnose/rs302_straggler_node.h"
#include "analyzer/diagnose/rs303_transient.h"
#include "analyzer/diagnose/rs304_uneven_work.h"
#include "analyzer/diagnose/rs401_launch_bound.h"
#include "analyzer/diagnose/rs402_synchronisation.h"
#include "analyzer/diagnose/rs403_input.h"
#include "analyzer/diagnose/rs404_allocator.h"
#include "analyzer/diagnose/rs405_pageable.h"
#include "analyzer/diagnose/rs406_starved.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

/// Reads what every recording has, or what only some jobs have: where it is not there, there is nothing to judge.
std::string nothingMissing(const job::Analysis&) {
    return {};
}

constexpr std::array kDetectors{
    Detector{"RS403", detectInputStall, missingForInputStall},
    Detector{"RS404", detectAllocatorChurn, missingForAllocatorChurn},
    Detector{"RS405", detectPageableCopies, missingForPageableCopies},
    Detector{"RS406", detectStarvedHost, missingForStarvedHost},
    Detector{"RS402", detectSynchronisationStall, missingForSynchronisationStall},
    Detector{"RS401", detectLaunchBound, missingForLaunchBound},
    Detector{"RS303", detectTransientStall, missingForTransientStall},
    Detector{"RS302", detectStragglerNode, missingForStragglerNode},
    Detector{"RS301", detectStraggler, missingForStraggler},
    Detector{"RS304", detectUnevenWork, missingForUnevenWork},
    Detector{"RS102", detectStageImbalance, missingForStageImbalance},
    Detector{"RS208", detectSlowLink, missingForSlowLink},
    Detector{"RS204", detectUnderUsedLink, missingForUnderUsedLink},
    Detector{"RS103", detectExposedP2p, nothingMissing},
    Detector{"RS101", detectBubble, nothingMissing},
    Detector{"RS209", detectContention, nothingMissing},
    Detector{"RS205", detectAlgorithm, missingForAlgorithm},
    Detector{"RS207", detectTensorParallelSpan, missingForTensorParallelSpan},
    Detector{"RS206", detectRedundant, missingForRedundant},
    Detector{"RS210", detectFullPrecision, missingForFullPrecision},
    Detector{"RS202", detectSmallMessages, missingForSmallMessages},
    Detector{"RS201", detectPoorOverlap, missingForPoorOverlap},
    Detector{"RS203", detectSaturation, missingForSaturation},
};

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
    finding.confidence *= 0.8;
}

/// What holds for every claim: enough steps, nothing lost where it points, a clock good enough.
void applySharedRules(const job::Analysis& analysis, job::Finding& finding) {
    if (const CatalogueEntry* entry = findCatalogueEntry(finding.id)) finding.title = entry->title;
    if (finding.verdict == job::Verdict::found &&
        static_cast<int>(analysis.steps.size()) < CommonThresholds::kFewestSteps) {
        finding.verdict = job::Verdict::inconclusive;
        finding.whyInconclusive = "only " + std::to_string(analysis.steps.size()) +
                                  (analysis.steps.size() == 1 ? " analysed step" : " analysed steps") +
                                  ": a persistent cause needs " + std::to_string(CommonThresholds::kFewestSteps);
    }
    tellAssumedGroup(analysis, finding);
    for (const store::Loss& loss : analysis.facts.losses) {
        if (loss.severity == store::Severity::info || loss.kind == "link_peaks")
            continue;  // sources that contradict each other are no gap
        if (!touches(loss, analysis, finding)) continue;
        finding.confidence *= 0.8;
        finding.evidence.facts.push_back("records are missing" +
                                         (loss.rank ? " on rank " + std::to_string(*loss.rank) : std::string()) + " (" +
                                         loss.kind + "): confidence lowered");
        break;
    }
}

}  // namespace

std::span<const Detector> detectors() {
    return kDetectors;
}

std::vector<job::Finding> detect(const job::Analysis& analysis) {
    Claims claims;
    return detect(analysis, claims);
}

std::vector<NotJudged> notJudged(const job::Analysis& analysis) {
    std::vector<NotJudged> result;
    if (analysis.steps.empty() || analysis.stepNs <= 0) return result;  // nothing is judged, and the report says why
    for (const Detector& detector : kDetectors)
        if (std::string needs = detector.missing(analysis); !needs.empty())
            result.push_back({detector.id, std::move(needs)});
    std::stable_sort(result.begin(), result.end(), [](const NotJudged& a, const NotJudged& b) { return a.id < b.id; });
    return result;
}

std::vector<job::Finding> detect(const job::Analysis& analysis, Claims& claims) {
    std::vector<job::Finding> findings;
    if (analysis.steps.empty() || analysis.stepNs <= 0) return findings;
    for (const Detector& detector : kDetectors) detector.detect(analysis, claims, findings);
    for (job::Finding& finding : findings) applySharedRules(analysis, finding);
    std::stable_sort(findings.begin(), findings.end(), [](const job::Finding& a, const job::Finding& b) {
        return a.savingNsPerStep.value_or(a.severity) > b.savingNsPerStep.value_or(b.severity);
    });
    return findings;
}

void setCost(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, job::Finding& finding) {
    const double cost = facts::median(costPerStepNs);
    const double spread = facts::quartileHalfWidth(costPerStepNs);
    finding.severity = cost / analysis.stepNs;
    finding.savingNsPerStep = cost;
    finding.savingLowNs = std::max(0.0, cost - spread);
    finding.savingHighNs = cost + spread;
    if (finding.severity < CommonThresholds::kFloorShare) finding.verdict = job::Verdict::note;
}

void setTypicalStep(const job::Analysis& analysis, const std::vector<double>& costPerStepNs, int rank,
                    job::Finding& finding) {
    finding.steps = analysis.steps;
    const double typical = facts::median(costPerStepNs);
    size_t best = 0;
    for (size_t i = 1; i < costPerStepNs.size() && i < analysis.steps.size(); ++i)
        if (std::abs(costPerStepNs[i] - typical) < std::abs(costPerStepNs[best] - typical)) best = i;
    if (const facts::StepWindow* window = analysis.window(rank, analysis.steps[best])) {
        finding.windowStartNs = window->startNs;
        finding.windowEndNs = window->startNs + window->durNs;
    }
}

}  // namespace rankscope::diagnose
