// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/rs301_straggler.h"

#include <fmt/format.h>

#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/slow_ranks.h"

namespace rankscope::diagnose {
namespace {

/// A host with one rank of several hosts': a slow device and a slow host look alike.
bool aloneOnHost(const job::Analysis& analysis, int rank) {
    const int64_t host = analysis.facts.findRank(rank)->hostId;
    size_t here = 0;
    for (const facts::RankSummary& other : analysis.ranks)
        here += analysis.facts.findRank(other.rank)->hostId == host ? 1 : 0;
    return here == 1;
}

}  // namespace

void detectStraggler(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (analysis.ranks.size() < 2) return;
    const std::vector<job::KernelRatio>& ratios = analysis.kernelRatios;
    std::vector<SlowGroup> groups;
    std::vector<SlowCost> costs;
    for (size_t r = 0; r < analysis.ranks.size(); ++r) {
        if (!isSlow(ratios[r]) || claims.culprits("RS302").count(analysis.ranks[r].rank) != 0) continue;
        groups.push_back(makeSlowGroup(analysis, ratios, {r}));
        costs.push_back(costOfSlowness(analysis, ratios, groups.back()));
    }
    shareSavings(costs);
    for (size_t g = 0; g < groups.size(); ++g) {
        const int rank = groups[g].ranks.front();
        job::Finding finding;
        finding.id = "RS301";
        if (!describeSlowness(analysis, ratios, groups[g], costs[g], finding)) continue;
        const std::string host = analysis.facts.findRank(rank)->host;
        finding.cause =
            fmt::format("rank {}{} computes {:.2f}x as long as its peers for the same work, and they wait for it", rank,
                        host.empty() ? "" : " (" + host + ")", groups[g].ratio);
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
        if (finding.verdict == job::Verdict::found) claims.takeWaiting(analysis, "RS301", {rank}, costs[g].shares);
        findings.push_back(std::move(finding));
    }
}

std::string missingForStraggler(const job::Analysis& analysis) {
    return withoutPeerRanks(analysis);
}

}  // namespace rankscope::diagnose
