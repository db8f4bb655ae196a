// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/own_pace.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/diagnose/slow_since.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs303 {
namespace {

constexpr Threshold kSigmas{"sigmas", 6, "robust standard deviations (1.4826 MAD) of the rank's own steps",
                            "noise of a few hundred steps does not reach it; two modes of steps widen the deviation"};
constexpr Threshold kExcessShare{"excess share", 0.05, "of the rank's typical step",
                                 "shorter ones are within what steps of one job differ by"};
constexpr Threshold kRareShare{"rare share", 1.0 / 3, "of the rank's steps at most",
                               "what comes more often is a mode of the job, not an accident"};
constexpr Threshold kFewestEvents{"fewest events", 2, "steps",
                                  "a single slow step cannot be said to come back: a note"};

constexpr const char* kSlowKernelsText = "the same kernels ran slower on its device";

/// One rank in one step that takes far longer than that rank's steps do.
struct Event {
    size_t rank = 0;  // index into analysis.ranks
    size_t step = 0;  // index into analysis.steps
    double excessNs = 0;
    double costNs = 0;  // what the job's step is longer for it
    std::string what;
};

/// Where a rank's step goes, for comparison with its typical step.
struct Parts {
    double compute = 0, transfer = 0, memory = 0;
    double work = 0;               // kernels at the pace they usually have on this rank
    std::array<double, 6> host{};  // stalls, by IdleCause
};

/// Usual duration of each kernel on a rank, ns.
using Pace = std::map<facts::KernelKey, double>;

Pace usualPace(const facts::RankSummary& rank) {
    std::map<facts::KernelKey, std::vector<double>> durations;
    for (const facts::KernelStatistics& kernel : rank.kernels) durations[kernel.key].push_back(kernel.medianNs);
    Pace pace;
    for (auto& [key, values] : durations) pace[key] = facts::median(std::move(values));
    return pace;
}

Parts partsOf(const job::Analysis& analysis, const facts::RankSummary& rank, const Pace& pace, int step) {
    Parts parts;
    if (const facts::Attribution* attribution = analysis.attribution(rank, step)) {
        parts.compute = static_cast<double>(attribution->computeNs);
        parts.transfer = static_cast<double>(attribution->exposedTransferNs);
        parts.memory = static_cast<double>(attribution->memoryNs);
    }
    for (const facts::KernelStatistics& kernel : rank.kernels)
        if (kernel.step == step) parts.work += kernel.count * pace.at(kernel.key);
    for (const facts::HostStall& stall : rank.hostStalls)
        if (stall.step == step) parts.host[static_cast<size_t>(stall.cause)] += static_cast<double>(stall.stallNs);
    return parts;
}

Parts typicalParts(const job::Analysis& analysis, const facts::RankSummary& rank, const Pace& pace) {
    std::vector<double> compute, transfer, memory, work;
    std::array<std::vector<double>, 6> host;
    for (int step : analysis.steps) {
        const Parts parts = partsOf(analysis, rank, pace, step);
        compute.push_back(parts.compute);
        transfer.push_back(parts.transfer);
        memory.push_back(parts.memory);
        work.push_back(parts.work);
        for (size_t cause = 0; cause < host.size(); ++cause) host[cause].push_back(parts.host[cause]);
    }
    Parts typical{facts::median(compute), facts::median(transfer), facts::median(memory), facts::median(work), {}};
    for (size_t cause = 0; cause < host.size(); ++cause) typical.host[cause] = facts::median(host[cause]);
    return typical;
}

std::string hostText(facts::IdleCause cause) {
    switch (cause) {
        case facts::IdleCause::input:
            return "its host waited for input (data loading, or no CUDA call at the start of the step)";
        case facts::IdleCause::allocator:
            return "its host was in the allocator";
        case facts::IdleCause::blockingCall:
            return "its host was busy behind a blocking call";
        case facts::IdleCause::lateLaunch:
            return "its host launched nothing (garbage collection, checkpoint, I/O, another process on its core)";
        default:
            return "its device idled for a reason the trace does not show";
    }
}

/// What the host did while the device stood still, in the longest such time of the step; in many short ones it was slow
/// all over.
std::string lateText(const job::Analysis& analysis, const facts::RankSummary& rank, int step, double excessNs) {
    const facts::HostStall* longest = nullptr;
    for (const facts::HostStall& stall : rank.hostStalls)
        if (stall.step == step && stall.cause == facts::IdleCause::lateLaunch &&
            (longest == nullptr || stall.stallNs > longest->stallNs))
            longest = &stall;
    if (longest == nullptr || static_cast<double>(longest->stallNs) < excessNs / 2)
        return "its host launched everything more slowly than usual (another process on its core, a profiler)";
    if (longest->doing.nameId != 0 && longest->doing.ns * 2 > longest->stallNs)
        return fmt::format("its host was in '{}' for {:.1f} ms", nameOr(analysis, longest->doing.nameId, "?"),
                           static_cast<double>(longest->doing.ns) / 1e6);
    return hostText(facts::IdleCause::lateLaunch);
}

/// What grew most in the event; empty when that is no accident of this rank: communication, or more work than usual.
std::string whatHappened(const job::Analysis& analysis, const facts::RankSummary& rank, int step, const Parts& event,
                         const Parts& typical, double excessNs) {
    size_t cause = 0;
    for (size_t c = 1; c < event.host.size(); ++c)
        if (event.host[c] - typical.host[c] > event.host[cause] - typical.host[cause]) cause = c;
    const double host = event.host[cause] - typical.host[cause];
    const double compute = event.compute - typical.compute;
    const double memory = event.memory - typical.memory;
    if (host >= std::max({compute, memory, excessNs / 4}))
        return static_cast<facts::IdleCause>(cause) == facts::IdleCause::lateLaunch
                   ? lateText(analysis, rank, step, excessNs)
                   : hostText(static_cast<facts::IdleCause>(cause));
    const double transfer = event.transfer - typical.transfer;
    if (transfer > std::max({compute, memory, excessNs / 2})) return {};
    if (compute > std::max(memory, excessNs / 2))
        return event.work - typical.work > compute / 2 ? std::string() : kSlowKernelsText;
    if (memory > excessNs / 2) return "its copies took longer";
    return hostText(facts::IdleCause::other);
}

std::vector<Event> eventsOf(const job::Analysis& analysis, size_t rank) {
    const facts::RankSummary& summary = analysis.ranks[rank];
    std::vector<double> own, deviations;
    for (int step : analysis.steps) own.push_back(ownTimeNs(analysis, summary, step));
    const double typical = facts::median(own);
    for (double value : own) deviations.push_back(std::abs(value - typical));
    const double sigma = 1.4826 * facts::median(deviations);
    const double least = std::max(kSigmas * sigma, kExcessShare * typical);
    std::vector<Event> events;
    for (size_t s = 0; s < own.size(); ++s)
        // A recording begins in its first step: what the device had been given before is missing, and the recorder
        // itself starts.
        if (own[s] - typical > least && analysis.steps[s] > 0) events.push_back({rank, s, own[s] - typical, 0, {}});
    if (static_cast<double>(events.size()) > kRareShare * static_cast<double>(own.size())) return {};
    if (events.empty()) return events;
    const Pace pace = usualPace(summary);
    const Parts usual = typicalParts(analysis, summary, pace);
    for (Event& event : events)
        event.what = whatHappened(analysis, summary, analysis.steps[event.step],
                                  partsOf(analysis, summary, pace, analysis.steps[event.step]), usual, event.excessNs);
    std::erase_if(events, [](const Event& event) { return event.what.empty(); });
    // Kernels that are slow to the end of the run are no stall of single steps.
    if (std::ranges::any_of(events, [](const Event& event) { return event.what == kSlowKernelsText; }))
        if (const auto change = changeOfPace(ownPace(analysis, summary), analysis.ranks.size()))
            std::erase_if(events, [&](const Event& event) {
                return event.step >= change->firstStep && event.what == kSlowKernelsText;
            });
    return events;
}

/// By analysed step: how much longer it is than the shortest one, of the rank that takes longest.
std::vector<double> longerThanShortest(const job::Analysis& analysis) {
    std::vector<double> longer;
    for (const int step : analysis.steps) {
        int64_t longest = 0;
        for (const facts::RankSummary& rank : analysis.ranks)
            if (const facts::Attribution* own = analysis.attribution(rank, step))
                longest = std::max(longest, own->stepNs);
        longer.push_back(static_cast<double>(longest));
    }
    const double shortest = longer.empty() ? 0 : *std::ranges::min_element(longer);
    for (double& step : longer) step -= shortest;
    return longer;
}

/// Sets each event's cost; returns the cost of each step: how much later its last rank is than without the events. By
/// calls alone a rank's own time is more where it waits less beside its compute, and no step is longer for that.
std::vector<double> chargeSteps(const job::Analysis& analysis, std::vector<Event>& events) {
    const std::vector<double> longerNs = longerThanShortest(analysis);
    std::vector<double> costs, typical;
    for (const facts::RankSummary& rank : analysis.ranks) {
        std::vector<double> own;
        for (int step : analysis.steps) own.push_back(ownTimeNs(analysis, rank, step));
        typical.push_back(facts::median(std::move(own)));
    }
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        double before = 0, after = 0;
        Event* last = nullptr;
        for (size_t r = 0; r < analysis.ranks.size(); ++r) {
            const double own = ownTimeNs(analysis, analysis.ranks[r], analysis.steps[s]);
            before = std::max(before, own);
            double left = std::min(own, typical[r]);  // what a waiting rank shows beyond that (transfers its compute
                                                      // hides otherwise) follows from the stall
            for (Event& event : events) {
                if (event.rank != r || event.step != s) continue;
                if (last == nullptr || event.excessNs > last->excessNs) last = &event;
            }
            after = std::max(after, left);
        }
        costs.push_back(last == nullptr ? 0 : std::clamp(before - after, 0.0, std::min(last->excessNs, longerNs[s])));
        if (last != nullptr) last->costNs = costs.back();
    }
    std::erase_if(events, [](const Event& event) { return event.costNs <= 0; });
    return costs;
}

/// What the others stand still while the rank stalls, in whichever step of theirs: their hosts may have run ahead. What
/// it costs beyond that, they stand still in the step of the same number.
void claimMeanwhile(const job::Analysis& analysis, const Event& event, Claims& claims) {
    const int stalled = analysis.ranks[event.rank].rank, number = analysis.steps[event.step];
    const facts::StepWindow* during = analysis.window(stalled, number);
    for (const facts::RankSummary& rank : analysis.ranks) {
        const facts::RankFacts* known = analysis.facts.findRank(rank.rank);
        if (rank.rank == stalled || known == nullptr || during == nullptr) continue;
        double left = event.costNs;
        const auto take = [&](int step, double atMostNs) {
            const double ns = std::min(
                {left, atMostNs, standstillNs(analysis, rank.rank, step) - claims.explainedNs(rank.rank, step)});
            if (ns <= 0) return;
            claims.take("RS303", rank.rank, step, ns);
            left -= ns;
        };
        for (auto step = std::ranges::lower_bound(known->steps, during->startNs, {}, &facts::StepWindow::endNs);
             step != known->steps.end() && step->startNs < during->endNs(); ++step)
            if (std::ranges::binary_search(analysis.steps, step->step))
                take(step->step, static_cast<double>(std::min(step->endNs(), during->endNs()) -
                                                     std::max(step->startNs, during->startNs)));
        take(number, left);
    }
}

void addEvidence(const job::Analysis& analysis, const std::vector<Event>& events, job::Finding& finding) {
    std::map<std::string, int> kinds;
    for (const Event& event : events) ++kinds[event.what];
    for (const auto& [what, count] : kinds)
        finding.evidence.facts.push_back(fmt::format("{} of {} times {}", count, events.size(), what));
    for (const Event& event : events) {
        const facts::RankSummary& rank = analysis.ranks[event.rank];
        const int step = analysis.steps[event.step];
        if (finding.evidence.rows.size() >= 5) break;
        finding.evidence.facts.push_back(fmt::format("step {}: rank {} took {:.2f} ms longer than it usually does: {}",
                                                     step, rank.rank, event.excessNs / 1e6, event.what));
        const facts::IdleGap* longest = nullptr;
        for (const facts::IdleGap& gap : rank.idleGaps)
            if (gap.step == step && (longest == nullptr || gap.durNs > longest->durNs)) longest = &gap;
        if (longest != nullptr)
            finding.evidence.rows.push_back(
                {"idle_gap", longest->id, rank.rank,
                 fmt::format("step {}: idle for {:.2f} ms", step, static_cast<double>(longest->durNs) / 1e6)});
    }
}

void detectTransientStall(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    std::vector<Event> events;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        for (Event& event : eventsOf(analysis, r)) events.push_back(std::move(event));
    const std::vector<double> costs = chargeSteps(analysis, events);
    if (events.empty()) return;
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.costNs > b.costNs; });

    job::Finding finding;
    finding.id = "RS303";
    // The median step is not hit: what it costs is spread over all of them.
    const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
    for (const Event& event : events) {
        finding.ranks.push_back(analysis.ranks[event.rank].rank);
        finding.steps.push_back(analysis.steps[event.step]);
    }
    for (std::vector<int>* list : {&finding.ranks, &finding.steps}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    if (static_cast<int>(finding.steps.size()) < kFewestEvents)
        finding.whyNote = "a single slow step cannot be said to come back";
    setMeanCost(analysis, mean, finding);
    if (finding.severity < PriceThresholds::kNoteShare) return;
    for (const facts::RankSummary& rank : analysis.ranks)
        if (!std::binary_search(finding.ranks.begin(), finding.ranks.end(), rank.rank))
            finding.affectedRanks.push_back(rank.rank);
    const Event& worst = events.front();
    if (const facts::StepWindow* window =
            analysis.window(analysis.ranks[worst.rank].rank, analysis.steps[worst.step])) {
        finding.windowStartNs = window->startNs;
        finding.windowEndNs = window->startNs + window->durNs;
    }
    finding.cause = fmt::format(
        "{} of {} steps {} up to {:.1f} ms longer because one rank stalls ({}); the longest, step {}: on rank {} {}",
        finding.steps.size(), analysis.steps.size(), finding.steps.size() == 1 ? "is" : "are", worst.costNs / 1e6,
        ranksText(analysis, finding.ranks), analysis.steps[worst.step], analysis.ranks[worst.rank].rank, worst.what);
    addEvidence(analysis, events, finding);
    finding.evidence.numbers.emplace_back("steps_hit", static_cast<double>(finding.steps.size()));
    finding.evidence.numbers.emplace_back("mean_cost_ns_per_step", mean);
    finding.fix = {
        "look at what the named ranks did in the named steps: garbage collection (gc.disable() and gc.collect() every "
        "so many steps, on all ranks at once), checkpoints (asynchronous), logging and I/O",
        "pin the ranks' processes to cores of their own (numactl, taskset); keep other jobs off these hosts",
    };
    // A note as well: that a stall is not known to come back does not make what it took unexplained.
    for (const Event& event : events) {
        claims.take("RS303", analysis.ranks[event.rank].rank, analysis.steps[event.step], event.costNs);
        claimMeanwhile(analysis, event, claims);
    }
    findings.push_back(std::move(finding));
}

std::string missingForTransientStall(const job::Analysis& analysis) {
    return analysis.steps.size() < 2 ? "one step only" : std::string();
}

Changes steady(const job::Analysis&, const job::Finding& f) {
    return {{"steady", {{"steps", job::listText(f.steps)}, {"ranks", job::listText(f.ranks)}}}};
}

}  // namespace

const Diagnosis kTransient{
    .id = "RS303",
    .title = "transient stall",
    .definition =
        "Some steps are much longer because one rank, not always the same, stalls in them: its host pauses (garbage "
        "collection, checkpoint, I/O), waits for input or the allocator, or its device runs the same kernels more "
        "slowly. A rank's step without waiting for others is compared with its own median. What it costs is spread "
        "over all analysed steps: the mean, so that one step in fifty that takes half as long again costs 1 %, and "
        "stays under the floor.",
    .thresholds = {kSigmas, kExcessShare, kRareShare, kFewestEvents},
    .falsePositives =
        "Steps with more kernels (evaluation, accumulation) are other work and left out; so are steps in which only "
        "communication took longer. A stall of every step is RS4xx or RS301.",
    .fix = "Look at what the named ranks did in the named steps; move it off the step, or do it on all ranks at once.",
    .byCalls = true,
    .hint =
        "Framed is the stall: one rank stands still for once (blank, or a long call on its host lanes) and the others "
        "wait for it (amber).",
    .detect = detectTransientStall,
    .missing = missingForTransientStall,
    .repair = steady,
};

}  // namespace rs303
}  // namespace rankscope::diagnose
