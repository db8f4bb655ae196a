// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/health_evidence.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/own_pace.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/diagnose/slow_since.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs305 {
namespace {

constexpr Threshold kTogether{
    "together", 1, "step between the changes of two ranks",
    "with more they are changes of their own; where kernels grow little by little noise moves "
    "the step in which that seems to begin, and all that grow are together"};
constexpr Threshold kNamedShare{"named share", 0.8, "of the lost time, in the kernels that are named",
                                "the last few of many are nothing to look at"};

struct RankChange {
    size_t rank = 0;  // index into analysis.ranks
    PaceChange change;
    double since = 0;             // pace against the steps before it: 1.2 takes 1.2 times as long
    std::vector<double> extraNs;  // by analysed step: compute that it did not need before; 0 before the change
};

/// A kernel that takes longer since the change, on one rank.
struct SlowerKernel {
    facts::KernelKey key;
    double beforeNs = 0, sinceNs = 0;
    double lostNs = 0;  // in all steps since
};

/// Takes out by how much more than usual the rank was behind its peers in each step: the rest it shares with them.
void takeOutOwn(const job::KernelRatio& ratio, std::vector<double>& pace) {
    for (size_t s = 0; s < pace.size(); ++s)
        pace[s] = ratio.perStep[s] > 0 ? pace[s] * ratio.ratio / ratio.perStep[s] : 0;
}

/// `toldElse`: how it differs from its peers another finding tells.
std::optional<RankChange> changeOfRank(const job::Analysis& analysis, size_t rank, bool toldElse) {
    const facts::RankSummary& summary = analysis.ranks[rank];
    std::vector<double> pace = ownPace(analysis, summary);
    if (toldElse) takeOutOwn(analysis.kernelRatios[rank], pace);
    const std::optional<PaceChange> change = changeOfPace(pace, analysis.ranks.size());
    if (!change) return std::nullopt;
    RankChange result{rank, *change, 0, std::vector<double>(change->firstStep, 0)};
    std::vector<double> since;
    for (size_t s = change->firstStep; s < pace.size(); ++s) {
        const facts::Attribution* own = analysis.attribution(summary, analysis.steps[s]);
        const bool slower = own != nullptr && pace[s] > change->before;
        result.extraNs.push_back(slower ? static_cast<double>(own->computeNs) * (1 - change->before / pace[s]) : 0);
        if (pace[s] > 0) since.push_back(pace[s] / change->before);
    }
    result.since = facts::median(std::move(since));
    return result;
}

/// Most lost time first.
std::vector<SlowerKernel> slowerKernels(const job::Analysis& analysis, const RankChange& change) {
    const facts::RankSummary& rank = analysis.ranks[change.rank];
    std::vector<SlowerKernel> slower;
    for (const auto& [key, times] : kernelTimes(analysis, rank)) {
        std::vector<double> before, since;
        for (size_t s = 0; s < times.size(); ++s)
            if (times[s] > 0) (s < change.change.firstStep ? before : since).push_back(times[s]);
        if (before.empty() || since.empty()) continue;
        SlowerKernel kernel{key, facts::median(before), facts::median(since), 0};
        if (kernel.sinceNs <= kernel.beforeNs) continue;
        for (const facts::KernelStatistics& one : rank.kernels)
            if (one.key == key && one.step >= analysis.steps[change.change.firstStep])
                kernel.lostNs += one.count * (kernel.sinceNs - kernel.beforeNs);
        slower.push_back(kernel);
    }
    std::ranges::stable_sort(slower, std::ranges::greater{}, &SlowerKernel::lostNs);
    return slower;
}

/// Those that make kNamedShare of what is lost.
std::vector<SlowerKernel> namedOf(std::vector<SlowerKernel> slower) {
    double all = 0, named = 0;
    for (const SlowerKernel& kernel : slower) all += kernel.lostNs;
    for (size_t i = 0; i < slower.size(); ++i) {
        if (named >= kNamedShare * all) {
            slower.resize(i);
            break;
        }
        named += slower[i].lostNs;
    }
    return slower;
}

/// The job's step, from start to end of its longest rank; the middle one of some steps.
double typicalStepNs(const job::Analysis& analysis, size_t first, size_t last) {
    std::vector<double> steps;
    for (size_t s = first; s < last; ++s) {
        int64_t longest = 0;
        for (const facts::RankSummary& rank : analysis.ranks)
            if (const facts::Attribution* own = analysis.attribution(rank, analysis.steps[s]))
                longest = std::max(longest, own->stepNs);
        steps.push_back(static_cast<double>(longest));
    }
    return facts::median(std::move(steps));
}

size_t firstStepOf(const std::vector<RankChange>& group) {
    return std::ranges::min_element(group, {}, [](const RankChange& one) { return one.change.firstStep; })
        ->change.firstStep;
}

/// What the steps are longer for it, as a mean of those since: no more than they became longer.
double costOf(const job::Analysis& analysis, const std::vector<RankChange>& group) {
    const size_t first = firstStepOf(group);
    const double longerNs =
        std::max(0.0, typicalStepNs(analysis, first, analysis.steps.size()) - typicalStepNs(analysis, 0, first));
    double sum = 0;
    for (size_t s = first; s < analysis.steps.size(); ++s) {
        double most = 0;  // the others wait for who needs most
        for (const RankChange& one : group) most = std::max(most, one.extraNs[s]);
        sum += std::min(most, longerNs);
    }
    return sum / static_cast<double>(analysis.steps.size() - first);
}

std::string kernelName(const job::Analysis& analysis, const facts::KernelKey& key) {
    const auto nameId = static_cast<size_t>(key.nameId);
    return nameId < analysis.facts.strings.size() ? text::readableKernelName(analysis.facts.strings[nameId]) : "?";
}

std::string namesText(const job::Analysis& analysis, const std::vector<SlowerKernel>& named) {
    std::vector<std::string> names;
    for (const SlowerKernel& kernel : named) {
        std::string name = kernelName(analysis, kernel.key);
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    return names.size() == 1 ? names.front() : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

void addEvidence(const job::Analysis& analysis, const RankChange& change, size_t first,
                 const std::vector<SlowerKernel>& named, job::Finding& finding) {
    tellCostSince(analysis, first, finding);
    finding.evidence.facts.insert(
        finding.evidence.facts.begin(),
        fmt::format("the step takes {} since step {} (median), and {} before",
                    text::durationText(typicalStepNs(analysis, first, analysis.steps.size())), analysis.steps[first],
                    text::durationText(typicalStepNs(analysis, 0, first))));
    if (change.change.isGradual)
        finding.evidence.facts.push_back(
            fmt::format("its pace grows from step {} on, to {:.2f}x in the last one (the straight line that fits the "
                        "steps best, better than two levels do)",
                        analysis.steps[change.change.firstStep], change.change.since / change.change.before));
    for (size_t i = 0; i < named.size() && i < 3; ++i)
        finding.evidence.facts.push_back(
            fmt::format("{} (grid {}) on rank {}: {} before, {} since: {:.2f}x", kernelName(analysis, named[i].key),
                        named[i].key.gridBlocks < 0 ? "unknown" : std::to_string(named[i].key.gridBlocks),
                        analysis.ranks[change.rank].rank, text::durationText(named[i].beforeNs),
                        text::durationText(named[i].sinceNs), named[i].sinceNs / named[i].beforeNs));
    finding.evidence.numbers.emplace_back("pace_since", change.since);
}

/// Share of the rank's kernels, by number, that are slower since by a good part of what the rank is.
double slowShare(const std::vector<SlowerKernel>& slower, const KernelTimes& all, double since) {
    const auto count = std::ranges::count_if(slower, [&](const SlowerKernel& kernel) {
        return kernel.sinceNs / kernel.beforeNs - 1 >= job::kPartOfSlowness * (since - 1);
    });
    return all.empty() ? 0 : static_cast<double>(count) / static_cast<double>(all.size());
}

/// Whether the rank is one for which others wait, as another finding tells.
bool isTold(const std::vector<job::Finding>& findings, int rank) {
    return std::ranges::any_of(findings, [&](const job::Finding& known) {
        return (known.id == kStraggler.id || known.id == kStragglerNode.id || known.id == kUnevenWork.id) &&
               std::ranges::find(known.ranks, rank) != known.ranks.end();
    });
}

/// "1.20x", or of ranks that differ "up to 2.50x (rank 3)".
std::string paceText(const job::Analysis& analysis, const std::vector<RankChange>& group, const RankChange& worst) {
    const double least = std::ranges::min_element(group, {}, &RankChange::since)->since;
    if (worst.since - least < kSlowRatio - 1) return fmt::format("{:.2f}x", worst.since);
    return fmt::format("up to {:.2f}x (rank {})", worst.since, analysis.ranks[worst.rank].rank);
}

void tell(const job::Analysis& analysis, const std::vector<RankChange>& group, Claims& claims,
          std::vector<job::Finding>& findings) {
    const RankChange& worst = *std::ranges::max_element(group, {}, &RankChange::since);
    const size_t first = firstStepOf(group);
    const std::vector<SlowerKernel> slower = slowerKernels(analysis, worst), named = namedOf(slower);
    if (named.empty()) return;
    job::Finding finding;
    finding.id = "RS305";
    for (const RankChange& one : group) finding.ranks.push_back(analysis.ranks[one.rank].rank);
    const double costNs = costOf(analysis, group);
    setMeanCost(analysis, costNs, finding, first);
    if (finding.severity < PriceThresholds::kNoteShare) return;
    setTypicalStep(analysis, worst.extraNs, analysis.ranks[worst.rank].rank, finding, first);
    if (group.size() < analysis.ranks.size())
        for (const facts::RankSummary& rank : analysis.ranks)
            if (std::ranges::find(finding.ranks, rank.rank) == finding.ranks.end() && !isTold(findings, rank.rank))
                finding.affectedRanks.push_back(rank.rank);
    const bool isDevice =
        slowShare(slower, kernelTimes(analysis, analysis.ranks[worst.rank]), worst.since) > kSlowKernels;
    finding.cause = fmt::format(
        "{} {} {} as long for the same kernels as before step {}{}, {}",
        group.size() > 1 && group.size() == analysis.ranks.size() ? "all ranks" : ranksText(analysis, finding.ranks),
        group.size() == 1 ? "takes" : "take", paceText(analysis, group, worst), analysis.steps[first],
        worst.change.isGradual ? fmt::format(", growing to {:.2f}x", worst.change.since / worst.change.before)
                               : std::string(),
        isDevice ? "most of them, as where devices become slower"
                 : "in " + namesText(analysis, named) + ": what it works on, or how, became another");
    addEvidence(analysis, worst, first, named, finding);
    addDeviceEvidence(analysis, finding);
    if (isDevice)
        finding.fix = {
            "look at clocks, power cap and temperature at that time: nvidia-smi -q -d "
            "CLOCK,POWER,TEMPERATURE,PERFORMANCE, cooling and power of the hosts, other jobs on them"};
    else
        finding.fix = {
            fmt::format("look at what changed in step {} for {}: its input (longer documents, more tokens for an "
                        "expert, another layout or alignment), an algorithm that a library chose anew, work that runs "
                        "beside it since",
                        analysis.steps[first], namesText(analysis, named)),
            fmt::format("record the steps around it in full: rankscope run --capture-range steps:{}-{}",
                        std::max(0, analysis.steps[first] - 5), analysis.steps[first] + 5)};
    if (finding.verdict == job::Verdict::found && !finding.affectedRanks.empty())
        claims.takeWaiting(analysis, finding.id, finding.ranks, worst.extraNs);
    findings.push_back(std::move(finding));
}

bool areTogether(const PaceChange& first, const PaceChange& later) {
    if (first.isGradual || later.isGradual) return first.isGradual && later.isGradual;
    return static_cast<double>(later.firstStep - first.firstStep) <= kTogether;
}

void detectSlowerKernels(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (analysis.facts.sharesDevices()) return;
    std::vector<RankChange> changes;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (auto change = changeOfRank(analysis, r, isTold(findings, analysis.ranks[r].rank)))
            changes.push_back(std::move(*change));
    std::ranges::stable_sort(
        changes, {}, [](const RankChange& one) { return std::pair(one.change.isGradual, one.change.firstStep); });
    for (size_t begin = 0, end = 0; begin < changes.size(); begin = end) {
        while (end < changes.size() && areTogether(changes[begin].change, changes[end].change)) ++end;
        std::vector<RankChange> group(changes.begin() + static_cast<std::ptrdiff_t>(begin),
                                      changes.begin() + static_cast<std::ptrdiff_t>(end));
        std::ranges::sort(group, {}, &RankChange::rank);
        tell(analysis, group, claims, findings);
    }
}

/// Steps that take longer since one of them, without kernels.
std::string longerSteps(const job::Analysis& analysis) {
    std::vector<double> steps;
    for (size_t s = 0; s < analysis.steps.size(); ++s) steps.push_back(typicalStepNs(analysis, s, s + 1));
    const double middle = facts::median(steps);
    if (middle <= 0) return {};
    for (double& step : steps) step /= middle;
    const std::optional<PaceChange> change = changeOfPace(steps, 1);
    if (!change) return {};
    return fmt::format("the steps {} {:.2f}x as long {} step {}, and only kernels tell whether they are why",
                       change->isGradual ? "grow to" : "take", change->since / change->before,
                       change->isGradual ? "from" : "since", analysis.steps[change->firstStep]);
}

/// Nothing can be played: no change of the job gives kernels back what they took in other steps.
std::vector<job::Change> asBefore(const job::Analysis&, const job::Finding&) {
    return {};
}

}  // namespace

const Diagnosis kSlowerKernels{
    .id = "RS305",
    .title = "kernels slower since a step",
    .definition =
        "From one step of the run on kernels take longer than before, of the same name, grid and block: on all ranks, "
        "or on some where they are too few kernels for a slow device (RS301). A rank's kernels are compared with what "
        "they took in its own other steps (not those of unknown grid), and its pace changes once, or grows little by "
        "little, by more than chance, for the worse, and stays so. Of a rank that another finding tells to be behind "
        "its peers, only what it shares with them counts. The cost is what the steps since then compute longer, and no "
        "more than they became longer.",
    .thresholds = {kFewestStepsSince,
                   kChangeByChance,
                   kRecoveredSteps,
                   {"rise", kSlowRatio - 1, "of the rank's kernel time", kSlowRatio.reason},
                   kTogether,
                   kNamedShare},
    .falsePositives =
        "Work that changes on purpose in the same grid: a curriculum of longer documents, a phase with other data.",
    .fix =
        "Of most kernels: clocks, power and cooling from that step on. Of one: its input, or the algorithm that a "
        "library chose for it.",
    .cureAt = CureAt::program,
    .bySums = true,
    .hint = "The kernels of the named ranks are longer behind the framed step's start than in front of it.",
    .detect = detectSlowerKernels,
    .missing = [](const job::Analysis& analysis) { return withoutOwnDevices(analysis); },
    .openByCalls = longerSteps,
    .repair = asBefore,
};

}  // namespace rs305
}  // namespace rankscope::diagnose
