// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/health_evidence.h"
#include "analyzer/diagnose/late_ranks.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/diagnose/slow_since.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::diagnose {
inline namespace rs301 {
namespace {

/// A host with one rank of several hosts': a slow device and a slow host look alike.
bool aloneOnHost(const job::Analysis& analysis, int rank) {
    const int64_t host = analysis.facts.findRank(rank)->hostId;
    size_t here = 0;
    for (const facts::RankSummary& other : analysis.ranks)
        here += analysis.facts.findRank(other.rank)->hostId == host ? 1 : 0;
    return here == 1;
}

void detectByCalls(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    for (const LateRank& late : lateRanks(analysis)) {
        const int rank = analysis.ranks[late.index].rank;
        if (claims.culprits(kStragglerNode.id).count(rank) != 0) continue;
        job::Finding finding;
        finding.id = "RS301";
        // Longer compute is all that shows; a stage may have more of the model.
        const char* alternative = late.isStage ? kStageImbalance.id : kUnevenWork.id;
        finding.alternatives = {alternative};
        describeLateness(analysis, {late}, finding);
        addDeviceEvidence(analysis, finding);
        const std::string host = analysis.facts.findRank(rank)->host;
        finding.cause = fmt::format(
            "rank {}{} comes late to what the ranks do together, {}: it needs {:.2f}x as long as {} between its "
            "communication, since its device or host is slow or {}, and they wait for it",
            rank, host.empty() ? "" : " (" + host + ")", whenLate(analysis, late), late.ratio,
            late.isStage ? "the other stages of its pipeline" : "its peers",
            late.isStage ? fmt::format("its stage has more to do ({})", alternative) : "its work is more");
        finding.fix = {
            fmt::format("check the device of rank {}{}: nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE (throttling, "
                        "ECC, a neighbour's process), and its host's load",
                        rank, host.empty() ? "" : " on " + host),
            std::string(late.isStage ? "compare its layers with the other stages'"
                                     : "compare its input with its peers'") +
                ": more work on one rank looks the same; to tell them apart record a few steps with kernels: rankscope "
                "run --capture-range steps:A-B"};
        // Also what they wait beside work of their own: it needs no other cause.
        if (finding.verdict == job::Verdict::found || late.lossSeen)
            claims.takeWaiting(analysis, "RS301", {rank}, late.waitedNs);
        findings.push_back(std::move(finding));
    }
}

void detectStraggler(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (analysis.ranks.size() < 2) return;
    if (isByCalls(analysis)) return detectByCalls(analysis, claims, findings);
    if (analysis.facts.sharesDevices()) return;
    std::vector<job::KernelRatio> ratios = analysis.kernelRatios;
    std::vector<std::optional<PaceChange>> changes;  // by group
    std::vector<bool> isSlowInMost;                  // the same
    std::vector<SlowGroup> groups;
    std::vector<SlowCost> costs;
    for (size_t r = 0; r < analysis.ranks.size(); ++r) {
        if (claims.culprits(kStragglerNode.id).count(analysis.ranks[r].rank) != 0) continue;
        const std::optional<SlowSince> change = slowSince(analysis, r);
        if (!change && !isSlow(ratios[r])) continue;
        isSlowInMost.push_back(isSlow(ratios[r]));
        if (!isSlowInMost.back()) ratios[r] = change->since;
        changes.push_back(change ? std::optional(change->change) : std::nullopt);
        groups.push_back(makeSlowGroup(analysis, ratios, {r}));
        costs.push_back(costOfSlowness(analysis, ratios, groups.back()));
    }
    for (size_t g = 0; g < groups.size(); ++g) {
        const int rank = groups[g].ranks.front();
        job::Finding finding;
        finding.id = "RS301";
        describeSlowness(analysis, ratios, groups[g], costs[g], finding);
        addChange(analysis, changes[g], finding);
        addDeviceEvidence(analysis, finding);
        const std::string host = analysis.facts.findRank(rank)->host;
        finding.cause = fmt::format(
            "rank {}{} computes {:.2f}x as long as its peers for the same work{}, and they wait for it", rank,
            host.empty() ? "" : " (" + host + ")", groups[g].ratio, sinceText(analysis, changes[g], isSlowInMost[g]));
        finding.fix = {
            fmt::format("check the device of rank {}{}: nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE (throttling, "
                        "ECC, a neighbour's process)",
                        rank, host.empty() ? "" : " on " + host),
            "move the rank to another device or leave that device out; when the slowness moves with the device, "
            "replace it",
        };
        if (!host.empty() && aloneOnHost(analysis, rank)) {
            finding.cause += fmt::format("; it is the only rank on {}: device or host, nothing tells which", host);
            finding.fix.push_back(
                fmt::format("check the host, too, as for a slow node (RS302): power cap and cooling, driver and "
                            "firmware versions, other jobs on {}",
                            host));
        }
        if (finding.verdict == job::Verdict::found) claims.takeWaiting(analysis, "RS301", {rank}, costs[g].extraNs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForStraggler(const job::Analysis& analysis) {
    const std::string alone = withoutPeerRanks(analysis);
    return alone.empty() ? withoutPeersByCalls(analysis) : alone;
}

}  // namespace

const Diagnosis kStraggler{
    .id = "RS301",
    .title = "straggler rank",
    .definition =
        "One rank computes longer than its peers for the same work, and the others wait for it. Kernels of the same "
        "name, grid and block are compared step by step: a rank's median against the median of the other ranks. Most "
        "of them must be slower, as a slow device slows all of them. What it costs is the step time that goes away "
        "when its compute takes as long as its peers'; time that communication would need anyway is not counted. A "
        "rank that becomes slow in the run and stays so is told with the step from which on it is, and its cost is of "
        "the steps since then: its pace changes once, or grows little by little, by more than chance, for the worse. "
        "Light "
        "recordings of calls alone have no kernels: there it is the rank that spends more of each step outside of "
        "communication than "
        "its peers, whether its device is slow, its host, or its work is more (RS304): which of them is left open. "
        "What "
        "the others lose is what its lateness grows by from one collective to the next; where chance differences of "
        "their arrivals are gone at the next one they stand still in between, and all of it is lost.",
    .thresholds =
        {kSlowRatio,
         kSlowErrors,
         kSlowStepsShare,
         kComparedShare,
         kSlowKernels,
         kFewestStepsSince,
         kChangeByChance,
         kRecoveredSteps,
         kLateShare,
         kLateInStep,
         kLateSteps,
         kMuchLater,
         {"part of slowness", job::kPartOfSlowness, "of the rank's excess",
          "from here on a kernel is one of the slow ones: memory and arithmetic lose differently to a lower clock"}},
    .falsePositives =
        "Kernels with one name and grid whose work depends on the data (attention over documents, grouped experts), "
        "where they are most of the rank's kernels; where they are few it is uneven work (RS304). A rank that only "
        "waits is never named: its kernels are as fast as its peers'. A slow rank hidden by communication that takes "
        "longer anyway is a note.",
    .fix =
        "Look at that device's clocks, temperature, power cap and neighbours; move the rank; replace the device when "
        "the slowness moves with it.",
    .cureAt = CureAt::machine,
    .byCalls = true,
    .hint =
        "The rank to fix stays blue (it still computes) where the others are amber: they have done the same work and "
        "wait for it. Framed are such waits.",
    .detect = detectStraggler,
    .missing = missingForStraggler,
    .repair = balancedUnlessChanged,
};

}  // namespace rs301
}  // namespace rankscope::diagnose
