// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/edits/change_transfers.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

/// Its detector saw the cause, and nothing but its own estimate of the cost makes it a note.
bool smallByEstimate(const job::Analysis& analysis, const job::Finding& finding) {
    if (finding.verdict != job::Verdict::note || finding.severity >= CommonThresholds::kFloorShare) return false;
    if (static_cast<int>(analysis.steps.size()) < CommonThresholds::kFewestSteps) return false;
    const Diagnosis* entry = findDiagnosis(finding.id);
    return entry != nullptr && entry->noteByCostOnly;
}

bool judgedByCost(const job::Finding& finding) {
    const Diagnosis* entry = findDiagnosis(finding.id);
    return entry == nullptr || entry->judgedByCost;
}

/// Certain findings, deepest cause first: the order of the detectors.
std::vector<job::Finding*> byDepth(const job::Analysis& analysis, std::vector<job::Finding>& findings) {
    std::vector<job::Finding*> ordered;
    for (const Diagnosis* diagnosis : diagnoses())
        for (job::Finding& finding : findings)
            if (finding.id == diagnosis->id &&
                (finding.verdict == job::Verdict::found || smallByEstimate(analysis, finding)))
                ordered.push_back(&finding);
    return ordered;
}

/// False: the detector saw something that the graph does not hold.
bool changeAll(edits::ChangedJob& job, const std::vector<std::string>& changes, const job::Analysis& analysis) {
    try {
        for (const std::string& text : changes) edits::change(job, *edits::parseEdit(text), analysis);
    } catch (const edits::EditError&) {
        return false;
    }
    return true;
}

/// The host sets the pace of the replay although its device hardly idles: a wait of the host for the device is not to
/// be seen in the trace and counts as its work, in front of which nothing gains.
bool waitsAreHidden(const job::Analysis& analysis) {
    double hostNs = 0;
    std::map<int, double> pathNs;
    for (const replay::PathShare& share : analysis.replay.path) {
        if (share.category != replay::PathCategory::host) continue;
        hostNs += share.nsPerStep;
        pathNs[share.rank] += share.nsPerStep;
    }
    if (hostNs < SavingThresholds::kHostPace * analysis.replay.predictedStepNs) return false;
    int64_t idleNs = 0, stepNs = 0;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::Attribution& step : rank.steps)
            if (pathNs.count(rank.rank) != 0) {
                idleNs += step.idleNs;
                stepNs += step.stepNs;
            }
    return static_cast<double>(idleNs) < SavingThresholds::kBusyIdle * static_cast<double>(stepNs);
}

void setSaving(job::Finding& finding, const facts::Estimate& saving) {
    finding.savingNsPerStep = std::max(0.0, saving.expected);
    finding.savingLowNs = std::max(0.0, saving.low);
    finding.savingHighNs = std::max(0.0, saving.high);
    finding.savingReplayed = true;
}

/// A repair that was made in the job, in the order of depth.
struct Repair {
    job::Finding* finding = nullptr;
    facts::Estimate gained;  // beyond the repairs before it
    bool small = false;      // less than a finding must cost
};

double meanOf(const std::vector<double>& values) {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// What shares are of: the step that the report gives, its typical one.
double reportedStepNs(const job::Analysis& analysis, const std::vector<double>& unchanged) {
    return analysis.stepNs > 0 ? analysis.stepNs : facts::median(unchanged);
}

/// The interval, too: what the trace leaves open of the changes is played.
edits::StepSides sidesWith(const job::Analysis& analysis, const std::vector<std::string>& changes,
                           const edits::ChangedJob& job, const std::vector<double>& unchanged) {
    edits::StepSides sides = edits::sidesOf(job.stepsNs);
    const auto stepsWith = [&](edits::Outlook outlook) {
        edits::ChangedJob other = edits::unchangedJob(analysis);
        other.effect.outlook = outlook;
        for (const std::string& text : changes) edits::change(other, *edits::parseEdit(text), analysis);
        return other.stepsNs;
    };
    if (job.effect.hostMaySlow) edits::addSlowHost(stepsWith, sides);
    if (job.effect.open) edits::addOutlooks(unchanged, job.effect, stepsWith, sides);
    return sides;
}

std::vector<double> stepsWithout(const job::Analysis& analysis, const std::vector<Repair>& repairs,
                                 const job::Finding* left) {
    edits::ChangedJob job = edits::unchangedJob(analysis);
    for (const Repair& repair : repairs)
        if (repair.finding != left) changeAll(job, repair.finding->changes, analysis);
    return job.stepsNs;
}

double estimateNs(const job::Finding& finding) {
    return std::max(1.0, finding.savingNsPerStep.value_or(1));
}

/// Two causes beside each other hide each other: the first one's repair gains nothing, the second one's all. They share
/// that as their detectors priced them.
void shareWithPartner(Repair& hidden, std::vector<Repair>& repairs) {
    Repair* partner = nullptr;
    for (Repair& other : repairs) {
        if (&other <= &hidden || other.small) continue;
        const bool alike = other.finding->id == hidden.finding->id;
        const bool partnerAlike = partner != nullptr && partner->finding->id == hidden.finding->id;
        if (partner == nullptr || (alike && !partnerAlike) ||
            (alike == partnerAlike && other.gained.expected > partner->gained.expected))
            partner = &other;
    }
    if (partner == nullptr) return;
    const double share = estimateNs(*hidden.finding) / (estimateNs(*hidden.finding) + estimateNs(*partner->finding));
    const facts::Estimate all = partner->gained;
    hidden.gained = all * share + hidden.gained;
    partner->gained = all * (1 - share);
    hidden.small = false;
}

/// What its detector says it costs is what it estimated the repair to save, and the replay agrees: one number, which is
/// the replay's.
bool sameQuantity(const job::Finding& finding, double stepNs, double replayedShare) {
    const auto alike = [](double a, double b) {
        return std::abs(a - b) <= SavingThresholds::kSameCost * std::max(a, b);
    };
    const double estimated =
        finding.savingNsPerStep.value_or(0) / (finding.meanStepNs > 0 ? finding.meanStepNs : stepNs);
    return std::abs(estimated - finding.severity) <= 1e-9 && alike(finding.severity, replayedShare);
}

/// The job gains less by its repair than a finding must cost, whatever the detector estimated.
void makeNote(job::Finding& finding, const facts::Estimate& saving, double share) {
    finding.verdict = job::Verdict::note;
    finding.severity = std::max(0.0, share);
    setSaving(finding, saving);
}

/// Repairs beside each other hide each other, or take each other's gain: where one gains something else by itself, as
/// its what-if tells, both are said.
void tellAlone(const job::Analysis& analysis, const std::vector<double>& unchanged,
               const std::vector<Repair>& repairs) {
    for (const Repair& repair : repairs) {
        edits::ChangedJob job = edits::unchangedJob(analysis);
        if (!changeAll(job, repair.finding->changes, analysis)) continue;
        const double alone = edits::typicalSaving(unchanged, job.stepsNs).expected, together = repair.gained.expected;
        if (std::abs(alone - together) <= SavingThresholds::kSameCost * std::max(alone, together)) continue;
        repair.finding->evidence.facts.push_back(fmt::format(
            "by itself the repair gains {}, as the what-if tells: it and the other repairs hide each other's gain, and "
            "{} is its part of what all gain together",
            alone > 1'000 ? text::durationText(alone) : std::string("nothing"), text::durationText(together)));
    }
}

/// What costs too little, alone and in the job that is otherwise repaired, becomes a note. `all`: steps with every
/// repair.
std::optional<Ceiling> judge(const job::Analysis& analysis, const std::vector<double>& unchanged,
                             const std::vector<double>& all, std::vector<Repair>& repairs) {
    const double stepNs = reportedStepNs(analysis, unchanged);
    const auto shareOf = [&](const Repair& repair) {
        return repair.gained.expected / (repair.finding->meanStepNs > 0 ? repair.finding->meanStepNs : stepNs);
    };
    bool demoted = false;
    for (Repair& repair : repairs) {
        if (!repair.small) continue;
        const bool others =
            std::any_of(repairs.begin(), repairs.end(), [](const Repair& other) { return !other.small; });
        if (others && edits::typicalSaving(stepsWithout(analysis, repairs, repair.finding), all).expected >=
                          CommonThresholds::kFloorShare * stepNs)
            shareWithPartner(repair, repairs);
        demoted = demoted || repair.small;
    }
    Ceiling ceiling;
    for (const Repair& repair : repairs) {
        if (repair.small) {
            makeNote(*repair.finding, repair.gained, shareOf(repair));
            continue;
        }
        repair.finding->verdict = job::Verdict::found;
        const double share = shareOf(repair);
        repair.finding->severity =
            sameQuantity(*repair.finding, stepNs, share) ? share : std::max(repair.finding->severity, share);
        setSaving(*repair.finding, repair.gained);
        ++ceiling.findings;
    }
    if (ceiling.findings == 0) return std::nullopt;
    std::erase_if(repairs, [](const Repair& repair) { return repair.small; });
    if (repairs.size() > 1) tellAlone(analysis, unchanged, repairs);
    const std::vector<double> repaired = demoted ? stepsWithout(analysis, repairs, nullptr) : all;
    ceiling.savingNs = edits::typicalSaving(unchanged, repaired);
    ceiling.share =
        ceiling.savingNs.expected / (edits::gainedByRareSteps(unchanged, repaired) ? meanOf(unchanged) : stepNs);
    return ceiling;
}

}  // namespace

std::vector<std::string> changesFor(const job::Analysis& analysis, const job::Finding& finding) {
    const Diagnosis* diagnosis = findDiagnosis(finding.id);
    return diagnosis != nullptr && diagnosis->repair != nullptr ? diagnosis->repair(analysis, finding) : Changes();
}

std::optional<Ceiling> replaySavings(const job::Analysis& analysis, std::vector<job::Finding>& findings) {
    const replay::ReplayModel& replay = analysis.replay;
    if (!replay.available() || replay.predictedStepNs <= 0) return std::nullopt;
    const std::vector<job::Finding*> certain = byDepth(analysis, findings);
    for (job::Finding* finding : certain) finding->changes = changesFor(analysis, *finding);
    if (replay.error() > SavingThresholds::kLargestError) return std::nullopt;
    const bool waitsHidden = waitsAreHidden(analysis);
    std::optional<edits::ChangedJob> job;  // none until something gains: a copy of a large graph is most of the memory
    const std::vector<double> unchanged = replay.stepsNs(replay.graph, replay.unchanged);
    const double stepNs = reportedStepNs(analysis, unchanged);
    edits::StepSides before = edits::sidesOf(unchanged);
    std::vector<std::string> changes;  // made so far
    std::vector<Repair> repairs;
    for (job::Finding* finding : certain) {
        if (finding->changes.empty()) continue;
        edits::ChangedJob next = job ? *job : edits::unchangedJob(analysis);
        if (!changeAll(next, finding->changes, analysis)) {
            finding->changes.clear();
            continue;
        }
        facts::Estimate gained = edits::typicalSaving(before.expected, next.stepsNs);
        const double share = gained.expected / (finding->meanStepNs > 0 ? finding->meanStepNs : stepNs);
        const bool belowFloor = share < CommonThresholds::kFloorShare;
        if (belowFloor && waitsHidden) continue;
        const bool small = gained.expected <= 0 || (belowFloor && judgedByCost(*finding));
        if (small && (finding->verdict != job::Verdict::found || gained.expected < 0)) {
            makeNote(*finding, gained, share);
            continue;
        }
        job = std::move(next);
        changes.insert(changes.end(), finding->changes.begin(), finding->changes.end());
        edits::StepSides after = sidesWith(analysis, changes, *job, unchanged);
        gained = edits::gainOf(before, after).savingNs;
        repairs.push_back({finding, gained, small});
        before = std::move(after);
    }
    job.reset();
    const std::optional<Ceiling> ceiling = judge(analysis, unchanged, before.expected, repairs);
    std::stable_sort(findings.begin(), findings.end(), [](const job::Finding& a, const job::Finding& b) {
        return a.savingNsPerStep.value_or(a.severity) > b.savingNsPerStep.value_or(b.severity);
    });
    return ceiling;
}

std::optional<double> transferEfficiency(const job::Analysis& analysis) {
    const replay::ReplayModel& replay = analysis.replay;
    if (!replay.available() || replay.predictedStepNs <= 0 || replay.error() > SavingThresholds::kLargestError)
        return std::nullopt;
    replay::TaskGraph instant = replay.graph;
    edits::changeTransfers(instant, [](const edits::TransferTask&, const replay::Exchange&, int64_t) { return 0; });
    return std::min(1.0, replay.stepNs(instant, replay::simulate(instant)) / replay.predictedStepNs);
}

}  // namespace rankscope::diagnose
