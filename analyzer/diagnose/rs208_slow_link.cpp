// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/health_evidence.h"
#include "analyzer/diagnose/link_saving.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_suspects.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs208 {
namespace {

std::string hostOf(const job::Analysis& analysis, int rank) {
    const facts::RankFacts* known = analysis.facts.findRank(rank);
    return known == nullptr || known->host.empty() ? "its host" : known->host;
}

double slownessOf(const job::LinkSuspect& suspect) {
    std::vector<double> values;
    for (const job::LinkProbe* probe : suspect.explains) values.push_back(probe->excess());
    return facts::median(std::move(values));
}

std::string causeOf(const job::Analysis& analysis, const job::LinkSuspect& suspect) {
    if (!suspect.network.empty()) return suspect.network;
    const bool atLeast = suspect.explains.front()->atLeast;
    const std::string ratio = fmt::format("{}{:.1f}", atLeast ? "at least " : "", slownessOf(suspect));
    const char* than = atLeast ? "than others of this job" : "than it should be";
    const char* way = suspect.betweenNodes ? "way to other nodes" : "link";
    if (suspect.node)
        return fmt::format("{} ({}): its way to other nodes is {} times slower {}",
                           hostOf(analysis, suspect.ranks.front()), text::ranksText(suspect.ranks), ratio, than);
    if (suspect.pair && !suspect.leaving.empty())
        return fmt::format("the link between rank {} ({}) and rank {} ({}) is {} times slower {}", suspect.ranks[0],
                           hostOf(analysis, suspect.ranks[0]), suspect.ranks[1], hostOf(analysis, suspect.ranks[1]),
                           ratio, than);
    if (suspect.pair)
        return fmt::format("messages {} rank {} and rank {} ({}, {}) take {} times what {} gives; other pairs do not",
                           suspect.bothWays ? "between" : "from the first to the second of", suspect.ranks[0],
                           suspect.ranks[1], hostOf(analysis, suspect.ranks[0]), hostOf(analysis, suspect.ranks[1]),
                           ratio, atLeast ? "the best that this job reached" : "a healthy link");
    return fmt::format("rank {} on {}: its {} is {} times slower {}", suspect.ranks[0],
                       hostOf(analysis, suspect.ranks[0]), way, ratio, than);
}

/// "messages from rank 2 to rank 3", "collectives of ranks 0-3".
std::string trafficText(const job::LinkProbe& probe) {
    return probe.pair ? fmt::format("messages from rank {} to rank {}", probe.ranks[0], probe.ranks[1])
                      : "collectives of " + text::ranksText(probe.ranks);
}

void addEvidence(const job::LinkSuspect& suspect, job::Finding& finding) {
    if (!suspect.leaving.empty()) finding.evidence.facts.push_back(suspect.leaving);
    finding.evidence.facts.insert(finding.evidence.facts.end(), suspect.facts.begin(), suspect.facts.end());
    finding.evidence.rows = suspect.rows;
    for (const job::LinkProbe* probe : suspect.explains) {
        finding.evidence.facts.push_back(fmt::format(
            "slow: {}: {:.1f} of {}{:.1f} GB/s in {} large transfers", trafficText(*probe), probe->busBytesPerNs,
            probe->atLeast ? "at least " : "", probe->peakBytesPerNs, probe->samples));
        addRowsOfWindow(*probe, finding);
        if (finding.evidence.facts.size() >= 3) break;
    }
    size_t listed = 0;
    for (const job::LinkProbe* probe : suspect.exonerates) {
        // What another class of links reached is no measure of this one, least of all of itself.
        if (probe->maybeSlow() || (probe->atLeast && probe->betweenNodes != suspect.explains.front()->betweenNodes) ||
            listed++ >= 3)
            continue;
        finding.evidence.facts.push_back(fmt::format(
            "{}: {}: {:.1f} of {}{:.1f} GB/s", probe->atLeast ? "faster" : "as fast as it should be",
            trafficText(*probe), probe->busBytesPerNs, probe->atLeast ? "at least " : "", probe->peakBytesPerNs));
    }
    finding.evidence.numbers.emplace_back("slowness", slownessOf(suspect));
}

void claim(const job::Analysis& analysis, const job::LinkSuspect& suspect, Claims& claims,
           std::vector<job::Finding>& findings) {
    std::vector<double> costs = savingAtPeak(analysis, suspect.explains);
    if (facts::median(costs) <= 0) return;
    job::Finding finding;
    finding.id = "RS208";
    finding.ranks = suspect.ranks;
    std::set<int> affected;
    for (const job::LinkProbe* probe : suspect.explains) affected.insert(probe->ranks.begin(), probe->ranks.end());
    finding.affectedRanks.assign(affected.begin(), affected.end());
    finding.communicator = suspect.explains.front()->communicatorId;
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, suspect.ranks.front(), finding);
    finding.cause = causeOf(analysis, suspect);
    addEvidence(suspect, finding);
    addLinkEvidence(analysis, suspect.node || suspect.betweenNodes, finding);
    const std::string second = hostOf(analysis, suspect.ranks.back());
    const std::string hosts =
        hostOf(analysis, suspect.ranks.front()) +
        (suspect.pair && second != hostOf(analysis, suspect.ranks.front()) ? " and of " + second : "");
    finding.fix = {
        suspect.node || suspect.betweenNodes
            ? fmt::format("check the NIC of {}: negotiated rate, cable, switch port, PCIe width (ibstat, ethtool, "
                          "lspci -vv), congestion and retransmits",
                          hosts)
            : fmt::format("check the device's links on {}: nvidia-smi nvlink -s, nvidia-smi topo -m, PCIe width (lspci "
                          "-vv), dmesg for Xid and AER errors",
                          hostOf(analysis, suspect.ranks.front())),
        "leave that node or device out of the job until it is repaired, and run again: the cost should go with it"};
    if (finding.verdict == job::Verdict::found)
        for (const job::LinkProbe* probe : suspect.explains)
            claims.takeTransfer("RS208", probe->communicatorId, finding.costNs);
    findings.push_back(std::move(finding));
}

bool needsAll(const job::LinkProbe& probe, const std::vector<int>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return probe.touches(rank); });
}

/// Suspects named by who leaves last, where no other traffic tells. Each explains all slow groups of its class of links
/// that it is in.
std::vector<job::LinkSuspect> fromLeaving(const job::Analysis& analysis, const std::vector<job::LinkProbe>& probes,
                                          std::vector<const job::LinkProbe*> open) {
    std::vector<job::LinkSuspect> result;
    for (const job::LinkProbe* probe : std::vector<const job::LinkProbe*>(open)) {
        std::optional<job::LinkSuspect> suspect = std::find(open.begin(), open.end(), probe) == open.end()
                                                      ? std::nullopt
                                                      : job::lastToLeave(analysis, *probe);
        if (!suspect) continue;
        for (const job::LinkProbe* other : open)
            if (other == probe || (other->betweenNodes == probe->betweenNodes && needsAll(*other, suspect->ranks)))
                suspect->explains.push_back(other);
        for (const job::LinkProbe* explained : suspect->explains) std::erase(open, explained);
        for (const job::LinkProbe& other : probes)
            if (!other.slow()) suspect->exonerates.push_back(&other);
        result.push_back(std::move(*suspect));
    }
    return result;
}

void detectSlowLink(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::vector<job::LinkProbe>& probes = analysis.linkProbes;
    const job::LinkSuspects suspects = job::findSuspects(analysis, probes);
    for (const job::LinkSuspect& suspect : suspects.found) claim(analysis, suspect, claims, findings);
    std::vector<const job::LinkProbe*> open = suspects.unexplained;
    for (const job::LinkSuspect& suspect : job::slowNetworkEdges(analysis, job::networkEdges(analysis), open)) {
        claim(analysis, suspect, claims, findings);
        for (const job::LinkProbe* probe : suspect.explains) std::erase(open, probe);
    }
    for (const job::LinkSuspect& suspect : fromLeaving(analysis, probes, open))
        claim(analysis, suspect, claims, findings);
}

std::string missingForSlowLink(const job::Analysis& analysis) {
    const std::string times = withoutTransferTimes(analysis);
    if (!times.empty()) return times;
    return analysis.linkProbes.empty() ? withoutLinkPeak(analysis, {}) : std::string();
}

}  // namespace

const Diagnosis kSlowLink{
    .id = "RS208",
    .title = "slow link or NIC",
    .definition =
        "Large transfers that need one rank, pair or node are slower than link peak, algorithm and protocol explain, "
        "and those that do not need it are as fast as they should be. All groups and pairs of the job are probes; the "
        "suspect is the one that every slow probe needs and no fast one does. Where one group of all ranks is the only "
        "probe, who leaves last tells: a ring's slowest edge is busy to the end, so its two ends leave last, and a "
        "slow rank in the middle of three. Between nodes NCCL's proxy threads tell, through the profiler plugin: the "
        "sender of the slow edge has its buffers on the network (SendWait) far longer for the same bytes than the "
        "others, who wait for their GPU. That is timed on one host's clock. Where nobody told the peak, probes are "
        "measured by the fastest of their class, and a single group by its own other edges: the senders' times on the "
        "network, or how much of a chunk's time the others leave earlier. Such a ratio is 'at least'.",
    .thresholds = {{"slow", job::LinkProbeThresholds::kSlow, "x the expected time",
                    "healthy links reach 80 to 95 % of their peak, unseen sharing may take a tenth"},
                   {"fewest", static_cast<double>(job::CollectiveSpeedThresholds::kFewest), "large transfers per probe",
                    "one slow message is an accident"},
                   {"leaves last", job::LeavingThresholds::kVisibleNs / 1000,
                    "us after the others, and two clock bounds between hosts",
                    "device clocks of one host agree to about a microsecond"},
                   {"slow edge", job::LinkProbeThresholds::kSlow,
                    "x the time on the network of the fastest quarter of the edges for the same sizes",
                    "as above; that quarter is healthy even when one NIC of three nodes is slow"},
                   {"explained", job::NetworkEdgeThresholds::kExplained, "of what the collective is too slow by",
                    "else all edges are slow (RS204), and this one a little more"},
                   {"smallest transfer", static_cast<double>(job::NetworkEdgeThresholds::kFewestBytes) / (1 << 20),
                    "MiB on an edge", "start-up times the rate of a link: under it time on the network is latency"},
                   {"busy", job::ReachedPeakThresholds::kBusyShare,
                    "of a collective on the network at the slow edge, without a told peak",
                    "with less the others do not wait for it"},
                   {"most lead", job::ReachedPeakThresholds::kMostLead, "of a chunk's time, without a told peak",
                    "longer leads tell little of the ratio: 'at least five times'"},
                   {"persistent", job::LeavingThresholds::kPersistent,
                    "of the large collectives agree on who leaves last", "a disturbed one in four is let pass"}},
    .falsePositives =
        "Other jobs on the same switch. The two ends of a rail between two nodes share all their traffic: both are "
        "named. With one rank on each of two nodes nothing is left to compare with: that is RS204.",
    .fix =
        "Check that rank's or host's link: negotiated rate, cable, PCIe width, error counters; leave the node out and "
        "compare.",
    .cureAt = CureAt::machine,
    .byCalls = true,
    .hint =
        "Framed are messages over the slow link: the same size takes less elsewhere. Amber is what the ranks behind "
        "it lose.",
    .detect = detectSlowLink,
    .missing = missingForSlowLink,
    .repair = healthyLinks,
};

}  // namespace rs208
}  // namespace rankscope::diagnose
