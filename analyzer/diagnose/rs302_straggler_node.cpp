// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/health_evidence.h"
#include "analyzer/diagnose/late_ranks.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/diagnose/slow_since.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::diagnose {
inline namespace rs302 {
namespace {

constexpr Threshold kAlike{"alike", 0.5, "of the host's median slowness, on each of its ranks",
                           "else some of its devices are slow (RS301), not the host"};
constexpr Threshold kBeganTogether{"began together", 1, "step between the changes of two of its ranks",
                                   "of light recordings: what makes a host slow does it to all its ranks at once"};

std::map<int64_t, std::vector<size_t>> ranksByHost(const job::Analysis& analysis) {
    std::map<int64_t, std::vector<size_t>> hosts;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        hosts[analysis.facts.findRank(analysis.ranks[r].rank)->hostId].push_back(r);
    return hosts;
}

/// By analysed step: the middle one of the host's ranks that are known, 0 where none is.
std::vector<double> paceOf(const std::vector<job::KernelRatio>& ratios, const std::vector<size_t>& members) {
    std::vector<double> pace;
    for (size_t s = 0; s < ratios[members.front()].perStep.size(); ++s) {
        std::vector<double> ofStep;
        for (const size_t member : members)
            if (ratios[member].perStep[s] > 0) ofStep.push_back(ratios[member].perStep[s]);
        pace.push_back(facts::median(std::move(ofStep)));
    }
    return pace;
}

/// Every rank of the host is slow, and about as slow as the others.
bool isSlowHost(const std::vector<job::KernelRatio>& ratios, const SlowGroup& group) {
    if (group.members.size() < 2 || group.ratio <= 1) return false;
    const auto slow =
        std::count_if(group.members.begin(), group.members.end(), [&](size_t r) { return isSlow(ratios[r]); });
    return slow * 2 > static_cast<std::ptrdiff_t>(group.members.size()) &&
           std::all_of(group.members.begin(), group.members.end(),
                       [&](size_t r) { return ratios[r].ratio - 1 >= kAlike * (group.ratio - 1); });
}

/// What is slow since some step is one host when they all are since then. Where they grow slower little by little noise
/// moves the step in which that seems to begin.
bool beganTogether(const std::vector<LateRank>& late) {
    if (std::ranges::all_of(late, [](const LateRank& one) { return one.change && one.change->isGradual; })) return true;
    const auto [first, last] = std::ranges::minmax(late, {}, &LateRank::firstStep);
    return static_cast<double>(last.firstStep - first.firstStep) <= kBeganTogether;
}

/// Of light recordings: every rank of the host is late, about as much as the others.
void detectByCalls(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::vector<LateRank> late = lateRanks(analysis);
    for (const auto& [host, members] : ranksByHost(analysis)) {
        std::vector<LateRank> here;
        double most = 0, least = 1;
        for (const LateRank& one : late) {
            if (std::ranges::find(members, one.index) == members.end()) continue;
            here.push_back(one);
            most = std::max(most, one.share);
            least = std::min(least, one.share);
        }
        if (here.size() < 2 || here.size() != members.size() || least < kAlike * most || !beganTogether(here)) continue;
        job::Finding finding;
        finding.id = "RS302";
        finding.alternatives = {kUnevenWork.id};  // longer compute is all that shows
        describeLateness(analysis, here, finding);
        addDeviceEvidence(analysis, finding);
        const std::string name = analysis.facts.findRank(finding.ranks.front())->host;
        finding.cause = fmt::format(
            "all {} ranks of host {} come late to what the ranks do together, {}: devices or host are slow, or their "
            "work is more, and those of other hosts wait for them",
            here.size(), name.empty() ? "unknown" : name, whenLate(analysis, here.front()));
        finding.fix = {
            fmt::format("check host {}: power cap and cooling (nvidia-smi -q -d POWER,TEMPERATURE,PERFORMANCE on all "
                        "its devices), its load, driver and firmware versions, other jobs on it",
                        name),
            "leave the host out (drain it in the scheduler) and run again; to tell slow devices from a slow host "
            "record "
            "a few steps with kernels: rankscope run --capture-range steps:A-B"};
        claims.takeWaiting(analysis, "RS302", finding.ranks,
                           finding.verdict == job::Verdict::found ? here.front().waitedNs : std::vector<double>());
        findings.push_back(std::move(finding));
    }
}

void detectStragglerNode(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const auto hosts = ranksByHost(analysis);
    if (hosts.size() < 2) return;
    if (isByCalls(analysis)) return detectByCalls(analysis, claims, findings);
    if (analysis.facts.sharesDevices()) return;
    // Ranks of one host are no peers of each other here: on a slow host they are all slow.
    std::vector<job::KernelRatio> ratios = job::compareKernelsBetweenHosts(analysis);
    std::vector<SlowGroup> slow;
    std::vector<std::optional<PaceChange>> changes;  // the same
    std::vector<bool> isSlowInMost;                  // the same
    for (const auto& [host, members] : hosts) {
        SlowGroup group = makeSlowGroup(analysis, ratios, members);
        const std::optional<PaceChange> change = changeOfPace(paceOf(ratios, members), hosts.size());
        const bool inMost = isSlowHost(ratios, group);  // of the steps
        if (!inMost) {
            if (!change) continue;
            const auto since = job::compareKernelsBetweenHosts(analysis, change->firstStep);
            group = makeSlowGroup(analysis, since, members);
            if (!isSlowHost(since, group)) continue;
            for (const size_t member : members) ratios[member] = since[member];
        }
        slow.push_back(std::move(group));
        changes.push_back(change);
        isSlowInMost.push_back(inMost);
    }
    std::vector<SlowCost> costs;
    for (const SlowGroup& group : slow) costs.push_back(costOfSlowness(analysis, ratios, group));
    for (size_t g = 0; g < slow.size(); ++g) {
        const SlowGroup& group = slow[g];
        const SlowCost& cost = costs[g];
        job::Finding finding;
        finding.id = "RS302";
        describeSlowness(analysis, ratios, group, cost, finding);
        addChange(analysis, changes[g], finding);
        addDeviceEvidence(analysis, finding);
        const std::string host = analysis.facts.findRank(group.ranks.front())->host;
        finding.cause = fmt::format(
            "all {} ranks of host {} compute {:.2f}x as long as their peers on other hosts for the same work{}, and "
            "those wait for them",
            group.ranks.size(), host.empty() ? "unknown" : host, group.ratio,
            sinceText(analysis, changes[g], isSlowInMost[g]));
        finding.fix = {
            fmt::format("check host {}: power cap and cooling (nvidia-smi -q -d POWER,TEMPERATURE,PERFORMANCE on all "
                        "its devices), driver and firmware versions, other jobs on it",
                        host),
            "leave the host out (drain it in the scheduler) and run again; when the slowness stays with the host, have "
            "it repaired",
        };
        // Named as a whole, whatever the verdict: its ranks are no stragglers of their own.
        claims.takeWaiting(analysis, "RS302", group.ranks,
                           finding.verdict == job::Verdict::found ? cost.extraNs : std::vector<double>());
        findings.push_back(std::move(finding));
    }
}

std::string missingForStragglerNode(const job::Analysis& analysis) {
    // Of a job on one host there is no other.
    const std::string alone = withoutPeerRanks(analysis);
    if (!alone.empty()) return alone;
    const std::string hosts = withoutHosts(analysis);
    return hosts.empty() ? withoutPeersByCalls(analysis) : hosts;
}

}  // namespace

const Diagnosis kStragglerNode{
    .id = "RS302",
    .title = "straggler node",
    .definition =
        "All ranks of one host compute longer than ranks of other hosts for the same work, and the others wait for "
        "them. As RS301, with only ranks of other hosts to compare with; one finding for the host in place of one for "
        "each rank, and with the step from which on it is slow where it became so in the run.",
    .thresholds = {kSlowRatio, kSlowErrors, kAlike, kFewestStepsSince, kChangeByChance, kRecoveredSteps,
                   kBeganTogether},
    .falsePositives =
        "Hosts with another model of device. Of two hosts one is always the slower: below the ratio it is not named.",
    .fix = "Power cap, cooling, driver and firmware of that host; drain it.",
    .cureAt = CureAt::machine,
    .byCalls = true,
    .hint =
        "The ranks of the host to fix stay blue where those of the others are amber: they have done the same work and "
        "wait. Framed are such waits.",
    .detect = detectStragglerNode,
    .missing = missingForStragglerNode,
    .repair = balancedUnlessChanged,
};

}  // namespace rs302
}  // namespace rankscope::diagnose
