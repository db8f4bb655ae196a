// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

double meanOf(const std::vector<double>& values) {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Share of the step from which it is a finding.
double floorOf(const job::Finding& finding) {
    return std::max(PriceThresholds::kFloorShare, finding.leastShare);
}

/// The same, ns of the step that its shares are of.
double floorNs(const job::Finding& finding, double typicalStepNs) {
    return floorOf(finding) * (finding.meanStepNs > 0 ? finding.meanStepNs : typicalStepNs);
}

/// By what it costs or saves, and by what its detector knows against it.
void setVerdict(job::Finding& finding) {
    finding.verdict = job::Verdict::found;
    if (finding.severity < floorOf(finding) || !finding.whyNote.empty()) {
        finding.verdict = job::Verdict::note;
        return;
    }
    if (!finding.whyInconclusive.empty()) finding.verdict = job::Verdict::inconclusive;
}

/// What can be played: certain findings, and what only its small cost makes a note. Deepest cause first.
std::vector<job::Finding*> certain(const job::Analysis& analysis, std::vector<job::Finding>& findings) {
    std::vector<job::Finding*> ordered;
    for (const Diagnosis* diagnosis : diagnoses())
        for (job::Finding& finding : findings) {
            const bool small = finding.verdict == job::Verdict::note && finding.whyNote.empty() &&
                               finding.whyInconclusive.empty() &&
                               static_cast<int>(analysis.steps.size()) >= PriceThresholds::kFewestSteps;
            if (finding.id == diagnosis->id && (finding.verdict == job::Verdict::found || small))
                ordered.push_back(&finding);
        }
    return ordered;
}

/// Steps of the job with these changes; nothing where one cannot be made: the detector saw something that the graph
/// does not hold.
std::optional<std::vector<double>> changedStepsNs(const job::Analysis& analysis,
                                                  const std::vector<job::Change>& changes) {
    const Played played = Player(analysis).play({changes});
    return played.impossible.empty() ? std::optional(played.stepsNs) : std::nullopt;
}

bool canPlay(const replay::ReplayModel& replay) {
    return replay.available() && replay.predictedStepNs > 0 && replay.error() <= PriceThresholds::kLargestError;
}

/// A repair that was made in the job, in the order of depth.
struct Repair {
    job::Finding* finding = nullptr;
    facts::Estimate gained;  // beyond the repairs before it
    bool small = false;      // less than a finding must cost
    double togetherNs = 0;   // what it gains with those that it shares with, which its verdict goes by; 0: with none
};

/// Of all repairs but the one `left` out.
Play playOf(const std::vector<Repair>& repairs, const job::Finding* left = nullptr) {
    Play play;
    for (const Repair& repair : repairs)
        if (repair.finding != left)
            play.changes.insert(play.changes.end(), repair.finding->changes.begin(), repair.finding->changes.end());
    return play;
}

/// Steps of the job with all repairs but the one `left` out; nothing where one of them needs it.
std::optional<std::vector<double>> stepsWith(Plays& plays, const std::vector<Repair>& repairs,
                                             const job::Finding* left = nullptr) {
    const Played& played = plays.of(playOf(repairs, left));
    return played.impossible.empty() ? std::optional(played.stepsNs) : std::nullopt;
}

/// The interval, too: what the trace leaves open of the changes is played. `job` has them.
edits::StepSides sidesWith(Plays& plays, const std::vector<job::Change>& changes, const Played& job,
                           const std::vector<double>& unchanged) {
    edits::StepSides sides = edits::sidesOf(job.stepsNs);
    edits::EditEffect effect;
    effect.open = job.open;
    effect.chanceNs = job.chanceNs;
    if (job.open) {
        std::vector<Play> outlooks;
        for (const edits::Outlook outlook : edits::kOutlooks) outlooks.push_back({changes, outlook});
        plays.expect(std::move(outlooks));
    }
    const auto steps = [&](edits::Outlook outlook) {
        const Played& other = plays.of({changes, outlook});
        if (!other.impossible.empty()) throw edits::EditError(other.impossible);
        return other.stepsNs;
    };
    if (job.hostMaySlow) edits::addSlowHost(steps, sides);
    if (job.chanceNs > 0) edits::addChance(unchanged, effect, sides);
    if (job.open) edits::addOutlooks(unchanged, effect, steps, sides);
    return sides;
}

/// Two causes beside each other hide each other: the first one's repair gains nothing, the second one's all. They share
/// that by what they cost.
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
    const double own = std::max(1.0, hidden.finding->costNs), others = std::max(1.0, partner->finding->costNs);
    const double share = own / (own + others);
    const facts::Estimate all = partner->gained;
    hidden.togetherNs = partner->togetherNs = std::max(partner->togetherNs, all.expected);
    hidden.gained = all * share + hidden.gained;
    partner->gained = all * (1 - share);
    hidden.small = false;
}

/// The replay's word on the finding.
void setSaving(const Repair& repair, double stepNs) {
    job::Finding& finding = *repair.finding;
    const facts::Estimate& saving = repair.gained;
    finding.savingNs = {std::max(0.0, saving.low), std::max(0.0, saving.expected), std::max(0.0, saving.high)};
    finding.severity = std::max(finding.savingNs->expected, repair.togetherNs) /
                       (finding.meanStepNs > 0 ? finding.meanStepNs : stepNs);
    finding.verdict = repair.small ? job::Verdict::note : job::Verdict::found;
}

/// Repairs beside each other hide each other, or take each other's gain: where one gains something else by itself, as
/// its what-if tells, both are said.
void tellAlone(Plays& plays, const std::vector<double>& unchanged, const std::vector<Repair>& repairs) {
    std::vector<Play> each;
    for (const Repair& repair : repairs) each.push_back({repair.finding->changes});
    plays.expect(std::move(each));
    for (const Repair& repair : repairs) {
        const Played& job = plays.of({repair.finding->changes});
        if (!job.impossible.empty()) continue;
        const double alone = edits::typicalSaving(unchanged, job.stepsNs).expected, together = repair.gained.expected;
        if (std::abs(alone - together) <= PriceThresholds::kSameCost * std::max(alone, together)) continue;
        repair.finding->evidence.facts.push_back(fmt::format(
            "by itself the repair gains {}, as the what-if tells: it and the other repairs hide each other's gain, and "
            "{} is its part of what all gain together",
            alone > 1'000 ? text::durationText(alone) : std::string("nothing"), text::durationText(together)));
    }
}

/// What saves too little, alone and in the job that is otherwise repaired, becomes a note. `all`: steps with every
/// repair.
std::optional<Ceiling> judge(Plays& plays, const std::vector<double>& unchanged, const std::vector<double>& all,
                             double stepNs, std::vector<Repair>& repairs) {
    bool demoted = false;
    std::vector<Play> less;
    for (const Repair& repair : repairs)
        if (repair.small) less.push_back(playOf(repairs, repair.finding));
    plays.expect(std::move(less));
    for (Repair& repair : repairs) {
        if (!repair.small) continue;
        const bool others =
            std::any_of(repairs.begin(), repairs.end(), [](const Repair& other) { return !other.small; });
        const auto without = others ? stepsWith(plays, repairs, repair.finding) : std::nullopt;
        if (without && edits::typicalSaving(*without, all).expected >= floorNs(*repair.finding, stepNs))
            shareWithPartner(repair, repairs);
        demoted = demoted || repair.small;
    }
    for (const Repair& repair : repairs) setSaving(repair, stepNs);
    std::erase_if(repairs, [](const Repair& repair) { return repair.small; });
    if (repairs.empty()) return std::nullopt;
    if (repairs.size() > 1) tellAlone(plays, unchanged, repairs);
    const std::optional<std::vector<double>> repaired = demoted ? stepsWith(plays, repairs) : all;
    if (!repaired) return std::nullopt;  // one needs a repair that gains too little to be told
    Ceiling ceiling;
    ceiling.findings = repairs.size();
    ceiling.savingNs = edits::typicalSaving(unchanged, *repaired);
    ceiling.share =
        ceiling.savingNs.expected / (edits::gainedByRareSteps(unchanged, *repaired) ? meanOf(unchanged) : stepNs);
    return ceiling;
}

/// What may be asked for while `at` and those behind it are made, when each is made on top of `repairs` and those
/// before it; then what is asked for at the end: what all gain without one of `repairs` that gained little, and each by
/// itself.
std::vector<Play> playsAhead(std::span<job::Finding* const> at, const std::vector<Repair>& repairs) {
    std::vector<Play> plays;
    const auto add = [](Play& play, const job::Finding* finding) {
        play.changes.insert(play.changes.end(), finding->changes.begin(), finding->changes.end());
    };
    Play onTop = playOf(repairs);
    for (const job::Finding* finding : at) {
        add(onTop, finding);
        if (!finding->changes.empty()) plays.push_back(onTop);
    }
    for (const Repair& repair : repairs) {
        if (!repair.small) continue;
        Play without = playOf(repairs, repair.finding);
        for (const job::Finding* finding : at) add(without, finding);
        if (!without.changes.empty()) plays.push_back(std::move(without));
    }
    for (const job::Finding* finding : at)
        if (!finding->changes.empty()) plays.push_back({finding->changes});
    return plays;
}

std::optional<Ceiling> playRepairs(const job::Analysis& analysis, std::vector<job::Finding>& findings, Plays& plays) {
    const replay::ReplayModel& replay = analysis.replay;
    const std::vector<double>& unchanged = replay.unchangedStepsNs;
    const double stepNs = analysis.stepNs > 0 ? analysis.stepNs : facts::median(unchanged);
    edits::StepSides before = edits::sidesOf(unchanged);
    // Those of the repairs so far. They are made again with the next: of a large job a copy of the graph that has them
    // is most of the memory.
    std::vector<job::Change> changes;
    std::vector<Repair> repairs;
    const std::vector<job::Finding*> ordered = certain(analysis, findings);
    for (size_t at = 0; at < ordered.size(); ++at) {
        job::Finding* const finding = ordered[at];
        if (finding->changes.empty()) continue;
        if (repairs.size() >= PriceThresholds::kMostPlayed) {
            finding->whyNotPlayed =
                fmt::format("the repairs of {} other causes were played before it: mend these first", repairs.size());
            finding->changes.clear();
            continue;
        }
        Play with{changes};
        with.changes.insert(with.changes.end(), finding->changes.begin(), finding->changes.end());
        if (!plays.oneByOne()) plays.expect(playsAhead(std::span(ordered).subspan(at), repairs));
        const Played& next = plays.of(with);
        if (!next.impossible.empty()) {
            finding->whyNotPlayed = next.impossible;
            finding->changes.clear();
            continue;
        }
        facts::Estimate gained = edits::typicalSaving(before.expected, next.stepsNs);
        const bool small = gained.expected < floorNs(*finding, stepNs);
        if (small && (finding->verdict != job::Verdict::found || gained.expected < 0)) {
            setSaving({finding, gained, true}, stepNs);
            continue;
        }
        changes = std::move(with.changes);
        edits::StepSides after = sidesWith(plays, changes, next, unchanged);
        gained = edits::gainOf(before, after).savingNs;
        repairs.push_back({finding, gained, small});
        before = std::move(after);
    }
    return judge(plays, unchanged, before.expected, stepNs, repairs);
}

/// Of a finding or note that has no saving, in a few words.
std::string whyNotPlayed(const job::Analysis& analysis, const job::Finding& finding) {
    if (!analysis.replay.available()) return "the job cannot be replayed";
    if (isSummarised(analysis)) return "kernels are told as summaries of steps, which cannot be played";
    if (!canPlay(analysis.replay))
        return fmt::format("the unchanged replay is off by {}", text::percentText(analysis.replay.error()));
    if (!finding.changes.empty() || !finding.whyInconclusive.empty() || !finding.whyNote.empty() ||
        static_cast<int>(analysis.steps.size()) < PriceThresholds::kFewestSteps)
        return "only what is certain is played";
    return "no change that can be played repairs it";
}

}  // namespace

void setCost(const job::Analysis& analysis, const std::vector<double>& perStepNs, job::Finding& finding) {
    finding.costNs = facts::median(perStepNs);
    finding.severity = finding.costNs / analysis.stepNs;
    setVerdict(finding);
}

void setMeanCost(const job::Analysis& analysis, double nsPerStep, job::Finding& finding, size_t firstStep) {
    finding.meanStepNs = 0;
    const std::vector<int> steps(analysis.steps.begin() + static_cast<std::ptrdiff_t>(firstStep), analysis.steps.end());
    for (int step : steps) {
        int64_t longest = 0;
        for (const facts::RankSummary& rank : analysis.ranks)
            if (const facts::Attribution* attribution = analysis.attribution(rank, step))
                longest = std::max(longest, attribution->stepNs);
        finding.meanStepNs += static_cast<double>(longest) / static_cast<double>(steps.size());
    }
    finding.costNs = nsPerStep;
    finding.severity = finding.meanStepNs > 0 ? nsPerStep / finding.meanStepNs : 0;
    setVerdict(finding);
}

void doubtFewSteps(const job::Analysis& analysis, job::Finding& finding) {
    if (finding.verdict != job::Verdict::found ||
        static_cast<int>(analysis.steps.size()) >= PriceThresholds::kFewestSteps)
        return;
    finding.verdict = job::Verdict::inconclusive;
    finding.whyInconclusive = fmt::format("only {} analysed step{}: a persistent cause needs {}", analysis.steps.size(),
                                          analysis.steps.size() == 1 ? "" : "s", PriceThresholds::kFewestSteps);
}

void setWholeJob(const job::Analysis& analysis, double share, job::Finding& finding) {
    finding.severity = share;
    finding.costNs = share * analysis.stepNs;
    finding.whyNotPlayed = "the job did not go on";
    finding.verdict = finding.whyInconclusive.empty() ? job::Verdict::found : job::Verdict::inconclusive;
}

void sortByWorth(std::vector<job::Finding>& findings) {
    std::ranges::stable_sort(findings, [](const job::Finding& a, const job::Finding& b) {
        const bool hangs = familyOf(a.id) == Family::hang, otherHangs = familyOf(b.id) == Family::hang;
        return hangs != otherHangs ? hangs : a.worthNs() > b.worthNs();
    });
}

std::optional<Ceiling> priceFindings(const job::Analysis& analysis, std::vector<job::Finding>& findings) {
    Plays plays(analysis);
    return priceFindings(analysis, findings, plays);
}

std::optional<Ceiling> priceFindings(const job::Analysis& analysis, std::vector<job::Finding>& findings, Plays& plays) {
    // Also of a replay that is too far off to price them: `rankscope recommend` goes on from them.
    if (analysis.replay.available())
        for (job::Finding* finding : certain(analysis, findings))
            if (const Diagnosis* diagnosis = findDiagnosis(finding->id); diagnosis->repair != nullptr)
                finding->changes = diagnosis->repair(analysis, *finding);
    const std::optional<Ceiling> ceiling = canPlay(analysis.replay) && !isSummarised(analysis)
                                               ? playRepairs(analysis, findings, plays)
                                               : std::optional<Ceiling>();
    for (job::Finding& finding : findings)
        if (!finding.savingNs && finding.whyNotPlayed.empty()) finding.whyNotPlayed = whyNotPlayed(analysis, finding);
    sortByWorth(findings);
    return ceiling;
}

std::optional<std::vector<double>> savingsAlone(const job::Analysis& analysis,
                                                const std::vector<job::Change>& changes) {
    const replay::ReplayModel& replay = analysis.replay;
    if (!canPlay(replay) || isSummarised(analysis) || replay.steps.empty() || changes.empty()) return std::nullopt;
    const std::vector<double>& before = replay.unchangedStepsNs;
    const std::optional<std::vector<double>> after = changedStepsNs(analysis, changes);
    if (!after) return std::nullopt;
    std::map<int, double> saved;
    std::vector<double> all;
    for (size_t s = 0; s < std::min({replay.steps.size(), before.size(), after->size()}); ++s) {
        all.push_back(std::max(0.0, before[s] - (*after)[s]));
        saved[replay.steps[s]] = all.back();
    }
    const double typical = facts::median(std::move(all));
    std::vector<double> savings;
    for (int step : analysis.steps) savings.push_back(saved.count(step) != 0 ? saved[step] : typical);
    return savings;
}

std::optional<double> transferEfficiency(const job::Analysis& analysis, Plays& plays) {
    const replay::ReplayModel& replay = analysis.replay;
    if (!canPlay(replay) || isSummarised(analysis)) return std::nullopt;
    return std::min(1.0, facts::mean(plays.of({.instant = true}).stepsNs) / replay.predictedStepNs);
}

}  // namespace rankscope::diagnose
