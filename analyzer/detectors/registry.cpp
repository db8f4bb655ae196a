// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/detectors/catalogue.h"
#include "analyzer/detectors/detector.h"
#include "analyzer/detectors/rs101_bubble.h"
#include "analyzer/detectors/rs102_stage_imbalance.h"
#include "analyzer/detectors/rs103_p2p_exposed.h"
#include "analyzer/detectors/rs201_overlap.h"
#include "analyzer/detectors/rs202_small_messages.h"
#include "analyzer/detectors/rs203_saturation.h"
#include "analyzer/detectors/rs204_under_used_link.h"
#include "analyzer/detectors/rs205_algorithm.h"
#include "analyzer/detectors/rs206_redundant.h"
#include "analyzer/detectors/rs207_tensor_parallel_span.h"
#include "analyzer/detectors/rs208_slow_link.h"
#include "analyzer/detectors/rs209_contention.h"
#include "analyzer/detectors/rs210_full_precision.h"
#include "analyzer/detectors/rs301_straggler.h"
#include "analyzer/detectors/rs302_straggler_node.h"
#include "analyzer/detectors/rs303_transient.h"
#include "analyzer/detectors/rs304_uneven_work.h"
#include "analyzer/detectors/rs401_launch_bound.h"
#include "analyzer/detectors/rs402_synchronisation.h"
#include "analyzer/detectors/rs403_input.h"
#include "analyzer/detectors/rs404_allocator.h"
#include "analyzer/detectors/rs405_pageable.h"
#include "analyzer/detectors/rs406_starved.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

/// Reads what every recording has, or what only some jobs have: where it is not there, there is nothing to judge.
std::string nothingMissing(const Analysis&) {
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
bool touches(const store::Loss& loss, const Analysis& analysis, const Finding& finding) {
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
void tellAssumedGroup(const Analysis& analysis, Finding& finding) {
    const auto communicator = finding.communicator ? analysis.facts.communicators.find(*finding.communicator)
                                                   : analysis.facts.communicators.end();
    if (communicator == analysis.facts.communicators.end() || communicator->second.identity != "assumed") return;
    finding.evidence.facts.push_back("assumed: communicator " + std::to_string(communicator->first) +
                                     " is one group of " + std::to_string(communicator->second.size) +
                                     " ranks on one stream; the trace of one rank does not tell its groups");
    finding.confidence *= 0.8;
}

/// What holds for every claim: enough steps, nothing lost where it points, a clock good enough.
void applySharedRules(const Analysis& analysis, Finding& finding) {
    if (const CatalogueEntry* entry = findCatalogueEntry(finding.id)) finding.title = entry->title;
    if (finding.verdict == Verdict::found && static_cast<int>(analysis.steps.size()) < CommonThresholds::kFewestSteps) {
        finding.verdict = Verdict::inconclusive;
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

std::vector<Finding> detect(const Analysis& analysis) {
    Claims claims;
    return detect(analysis, claims);
}

std::vector<NotJudged> notJudged(const Analysis& analysis) {
    std::vector<NotJudged> result;
    if (analysis.steps.empty() || analysis.stepNs <= 0) return result;  // nothing is judged, and the report says why
    for (const Detector& detector : kDetectors)
        if (std::string needs = detector.missing(analysis); !needs.empty())
            result.push_back({detector.id, std::move(needs)});
    std::stable_sort(result.begin(), result.end(), [](const NotJudged& a, const NotJudged& b) { return a.id < b.id; });
    return result;
}

std::vector<Finding> detect(const Analysis& analysis, Claims& claims) {
    std::vector<Finding> findings;
    if (analysis.steps.empty() || analysis.stepNs <= 0) return findings;
    for (const Detector& detector : kDetectors) detector.detect(analysis, claims, findings);
    for (Finding& finding : findings) applySharedRules(analysis, finding);
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
        return a.savingNsPerStep.value_or(a.severity) > b.savingNsPerStep.value_or(b.severity);
    });
    return findings;
}

void setCost(const Analysis& analysis, const std::vector<double>& costPerStepNs, Finding& finding) {
    const double cost = median(costPerStepNs);
    const double spread = quartileHalfWidth(costPerStepNs);
    finding.severity = cost / analysis.stepNs;
    finding.savingNsPerStep = cost;
    finding.savingLowNs = std::max(0.0, cost - spread);
    finding.savingHighNs = cost + spread;
    if (finding.severity < CommonThresholds::kFloorShare) finding.verdict = Verdict::note;
}

void setTypicalStep(const Analysis& analysis, const std::vector<double>& costPerStepNs, int rank, Finding& finding) {
    finding.steps = analysis.steps;
    const double typical = median(costPerStepNs);
    size_t best = 0;
    for (size_t i = 1; i < costPerStepNs.size() && i < analysis.steps.size(); ++i)
        if (std::abs(costPerStepNs[i] - typical) < std::abs(costPerStepNs[best] - typical)) best = i;
    if (const StepWindow* window = analysis.window(rank, analysis.steps[best])) {
        finding.windowStartNs = window->startNs;
        finding.windowEndNs = window->startNs + window->durNs;
    }
}

}  // namespace rankscope::analyzer
