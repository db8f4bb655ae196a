// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/link_saving.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_suspects.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs204 {
namespace {

struct Cause {
    std::string text;
    std::string fix;
    bool slows = true;  // whatever the machine; false: it may name what is best there
};

/// Settings recorded with the job that keep NCCL off the fast way.
std::vector<Cause> visibleCauses(const job::Analysis& analysis, bool betweenNodes) {
    const auto value = [&](const char* name) { return analysis.facts.text(std::string("env.") + name); };
    const auto is = [&](const char* name, const char* wanted) { return value(name) == wanted; };
    std::vector<Cause> causes;
    if (betweenNodes) {
        if (is("NCCL_IB_DISABLE", "1"))
            causes.push_back(
                {"NCCL_IB_DISABLE=1 keeps NCCL off InfiniBand/RoCE: it uses sockets", "unset NCCL_IB_DISABLE"});
        if (is("NCCL_NET", "Socket") || is("NCCL_NET", "socket"))
            causes.push_back({"NCCL_NET=Socket forces the socket transport", "unset NCCL_NET (or set it to IB)"});
        if (is("NCCL_NET_GDR_LEVEL", "LOC") || is("NCCL_NET_GDR_LEVEL", "0"))
            causes.push_back({"NCCL_NET_GDR_LEVEL turns GPUDirect RDMA off", "unset NCCL_NET_GDR_LEVEL"});
        if (const std::string names = value("NCCL_SOCKET_IFNAME"); !names.empty() && causes.empty())
            causes.push_back({"NCCL_SOCKET_IFNAME=" + names + " names the interface",
                              "check that NCCL_SOCKET_IFNAME is the fast interface, and NCCL_IB_HCA the right adapters",
                              false});
        if (const std::string names = value("NCCL_IB_HCA"); !names.empty())
            causes.push_back({"NCCL_IB_HCA=" + names + " limits the adapters",
                              "name all adapters in NCCL_IB_HCA, or unset it", false});
    } else {
        if (is("NCCL_P2P_DISABLE", "1"))
            causes.push_back(
                {"NCCL_P2P_DISABLE=1 keeps NCCL off NVLink and PCIe peer-to-peer: copies go through the host",
                 "unset NCCL_P2P_DISABLE"});
        if (is("NCCL_P2P_LEVEL", "LOC") || is("NCCL_P2P_LEVEL", "0"))
            causes.push_back({"NCCL_P2P_LEVEL turns peer-to-peer off", "unset NCCL_P2P_LEVEL (or NVL)"});
        if (is("NCCL_SHM_DISABLE", "1"))
            causes.push_back(
                {"NCCL_SHM_DISABLE=1 sends what is not peer-to-peer through the network", "unset NCCL_SHM_DISABLE"});
    }
    for (const char* name : {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"})
        if (const std::string channels = value(name); !channels.empty() && std::atoi(channels.c_str()) < 8)
            causes.push_back({fmt::format("{}={} leaves too few channels for this link", name, channels),
                              fmt::format("unset {} or raise it to 16", name)});
    return causes;
}

void claim(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& slow, bool betweenNodes,
           const std::vector<int>& candidates, Claims& claims, std::vector<job::Finding>& findings) {
    const std::vector<double> costs = savingAtPeak(analysis, slow);
    if (facts::median(costs) <= 0) return;
    job::Finding finding;
    finding.id = "RS204";
    std::set<int> ranks;
    std::vector<double> rates, peaks, slowness, excess;
    for (const job::LinkProbe* probe : slow) {
        ranks.insert(probe->ranks.begin(), probe->ranks.end());
        rates.push_back(probe->busBytesPerNs);
        peaks.push_back(probe->peakBytesPerNs);
        slowness.push_back(probe->slowness);
        excess.push_back(probe->excess());
    }
    finding.ranks.assign(ranks.begin(), ranks.end());
    finding.affectedRanks = finding.ranks;
    finding.communicator = slow.front()->communicatorId;
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, finding.ranks.front(), finding);
    for (const job::LinkProbe* probe : slow)
        if (finding.evidence.rows.size() < 4) addRowsOfWindow(*probe, finding);
    const std::vector<Cause> causes = visibleCauses(analysis, betweenNodes);
    finding.cause =
        fmt::format("large messages {} run at {:.1f} of {:.1f} GB/s",
                    betweenNodes ? "between nodes" : "inside the node", facts::median(rates), facts::median(peaks));
    for (const Cause& cause : causes) finding.cause += "; " + cause.text;
    finding.evidence.facts = {
        fmt::format("{} these links {} slow{}: {:.1f} times what peak, algorithm and protocol explain ({}){}",
                    slow.size() == 1 ? "the only group that uses" : fmt::format("all {} groups that use", slow.size()),
                    slow.size() == 1 ? "is" : "are", slow.size() == 1 ? "" : " alike", facts::median(slowness),
                    analysis.peaks.source,
                    slow.front()->share.low < 1 ? fmt::format("; healthy ones reach {} of such a rate, or more",
                                                              text::percentText(slow.front()->share.low))
                                                : std::string()),
        "no other transfer of their ranks ran beside the messages counted"};
    if (betweenNodes && !candidates.empty() && causes.empty())
        finding.evidence.facts.push_back(
            "a slow NIC of one member would look the same when all groups share it; nothing in this trace tells them "
            "apart");
    finding.evidence.numbers = {{"busbw_bytes_per_ns", facts::median(rates)},
                                {"peak_bytes_per_ns", facts::median(peaks)},
                                {"slowness", facts::median(slowness)},
                                {"excess", facts::median(excess)}};
    for (const Cause& cause : causes) finding.fix.push_back(cause.fix);
    if (betweenNodes)
        finding.fix.push_back(
            "NCCL_DEBUG=INFO prints the transport ('NET/IB' or 'NET/Socket'): set NCCL_IB_HCA / NCCL_SOCKET_IFNAME to "
            "the fast adapters, NCCL_NET_GDR_LEVEL=PHB");
    else
        finding.fix.push_back(
            "NCCL_DEBUG=INFO prints the transport ('P2P/CUMEM', 'SHM'): nvidia-smi topo -m shows whether NVLink is "
            "there; NCCL_P2P_LEVEL=NVL, NCCL_MIN_CTAS=16");
    if (finding.verdict == job::Verdict::found)
        for (const job::LinkProbe* probe : slow) claims.takeTransfer("RS204", probe->communicatorId, finding.costNs);
    findings.push_back(std::move(finding));
}

/// Groups whose links of that class nobody knows the peak of: alike they may all be slow, and a setting that keeps NCCL
/// off the fast way says that they are. By how much nothing tells, so that no saving is claimed.
void claimBySetting(const job::Analysis& analysis, bool betweenNodes, Claims& claims,
                    std::vector<job::Finding>& findings) {
    std::vector<Cause> causes = visibleCauses(analysis, betweenNodes);
    std::erase_if(causes, [](const Cause& cause) { return !cause.slows; });
    if (causes.empty()) return;
    std::set<int64_t> ids;
    std::set<int> ranks;
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        if (communicator.size < 2 || (communicator.nodes > 1) != betweenNodes ||
            !analysis.peaks.atLeast(communicator) || claims.explainedTransferNs(id, "RS204") > 0)
            continue;
        ids.insert(id);
        for (int rank : recordedMembers(analysis, communicator)) ranks.insert(rank);
    }
    std::vector<double> exposed;
    const std::vector<CriticalStep> steps = ids.empty() ? std::vector<CriticalStep>() : criticalSteps(analysis, ids);
    for (const CriticalStep& step : steps) exposed.push_back(step.exposedTransferNs());
    if (facts::median(exposed) < PriceThresholds::kFloorShare * analysis.stepNs) return;
    const std::optional<costs::LinkClass>& link = betweenNodes ? analysis.peaks.inter : analysis.peaks.intra;
    job::Finding finding;
    finding.id = "RS204";
    finding.ranks.assign(ranks.begin(), ranks.end());
    finding.affectedRanks = finding.ranks;
    finding.communicator = *ids.begin();
    setCost(analysis, exposed, finding);
    setTypicalStep(analysis, exposed, steps.front().rank->rank, finding);
    finding.cause = fmt::format("communication {} reaches {:.1f} GB/s a rank at best",
                                betweenNodes ? "between nodes" : "inside the node", link->bytesPerNs);
    for (const Cause& cause : causes) finding.cause += "; " + cause.text;
    for (const Cause& cause : causes) finding.fix.push_back(cause.fix);
    finding.evidence.facts = {fmt::format(
        "{} of it is exposed a step: at most so much is saved, how much of it the link's peak would tell (--links)",
        text::durationText(facts::median(exposed)))};
    finding.evidence.numbers = {{"reached_bytes_per_ns", link->bytesPerNs},
                                {"exposed_transfer_ns_per_step", facts::median(exposed)}};
    const CriticalStep& shown = shownStep(analysis, steps, finding);
    for (size_t i : shown.own)
        if (const facts::CommTask& task = shown.tasks[i]; task.collectiveId != 0 && finding.evidence.rows.size() < 3)
            finding.evidence.rows.push_back(
                {"collective", task.collectiveId, shown.rank->rank, "it went the slow way"});
    if (finding.verdict == job::Verdict::found)
        for (int64_t id : ids) claims.takeTransfer("RS204", id, facts::median(exposed));
    findings.push_back(std::move(finding));
}

void detectUnderUsedLink(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::vector<job::LinkProbe>& probes = analysis.linkProbes;
    const job::LinkSuspects suspects = job::findSuspects(analysis, probes);
    for (bool betweenNodes : {false, true}) {
        if (!betweenNodes && analysis.facts.sharesDevices()) continue;  // between them is no link that could be used
        const bool reason = std::ranges::any_of(visibleCauses(analysis, betweenNodes), &Cause::slows);
        const auto isSlow = [&](const job::LinkProbe& probe) {
            return probe.slow() || (reason && probe.slowForAReason());
        };
        std::vector<const job::LinkProbe*> slow = suspects.unexplained;
        if (reason) {
            slow.clear();
            for (const job::LinkProbe& probe : probes) slow.push_back(&probe);
        }
        std::erase_if(slow, [&](const job::LinkProbe* probe) {
            return probe->betweenNodes != betweenNodes || !isSlow(*probe) ||
                   claims.explainedTransferNs(probe->communicatorId, "RS204") > 0;
        });
        // Links of a class that are not all slow have a culprit of their own, named or not.
        const bool someFast = std::ranges::any_of(
            probes, [&](const job::LinkProbe& probe) { return probe.betweenNodes == betweenNodes && !isSlow(probe); });
        if (!slow.empty() && !someFast)
            claim(analysis, slow, betweenNodes, suspects.candidates, claims, findings);
        else
            claimBySetting(analysis, betweenNodes, claims, findings);
    }
}

std::string missingForUnderUsedLink(const job::Analysis& analysis) {
    // By the best that the job reached, links that are all slow alike look as they should.
    const std::string times = withoutTransferTimes(analysis);
    return times.empty() ? withoutLinkPeak(analysis, {}) : times;
}

}  // namespace

const Diagnosis kUnderUsedLink{
    .id = "RS204",
    .title = "under-used link",
    .definition =
        "Large collectives and messages of one link class (inside a node, or between nodes) run far under its peak in "
        "every group that uses it. Expected is the time that peak, start-up, and the recorded algorithm and protocol "
        "give at their slow end, so that a wrong protocol (RS205) does not count, on a link that reaches the least "
        "share of the peak that healthy ones do: 0.75 over NVLink, 0.48 over PCIe, 0.89 over InfiniBand, 0.58 over "
        "Ethernet and 0.73 over a network of unknown kind, all of what was measured. Healthy machines may take 0.15 "
        "times more than that inside a node, over nodes 0.6 times more up to 16 MiB and 0.25 from 256 MiB on, and "
        "three times as long where all large messages of a group or pair have one size up to 64 MiB, which may be a "
        "kink, unless messages of another operation or size that use these links are slow as well. Over PCIe what "
        "compute beside a transfer takes of it is left out, up to 1.8 times its time. Slow is "
        "what takes 1.5 times as long as all that, with every size; where a recorded NCCL variable keeps it off the "
        "fast way, 1.5 times "
        "the expected time is enough, and the variable is named. Up to 1.3 times the time at that share it is at its "
        "ceiling (RS203), in between nobody can tell; a faster link of the class becomes the measure of the others. "
        "Only "
        "transfers beside which none of their ranks carried another are looked at: contention is no under-used link.",
    .thresholds = {{"slow", job::LinkProbeThresholds::kSlow,
                    "x the expected time at the share that healthy links reach",
                    "a job's step may take a fifth of what nccl-tests reach, unseen sharing a tenth"},
                   {"start-up share", job::CollectiveSpeedThresholds::kStartupShare, "of the expected time",
                    "above it the message is under n* and says more about latency than about the link"},
                   {"shared share", job::CollectiveSpeedThresholds::kSharedShare, "of a transfer beside another",
                    "a tenth stays within what peaks are known to"}},
    .falsePositives =
        "A configured peak that is too high makes any link look under-used. Where one member's NIC is slow and every "
        "group contains it, this looks the same; groups without it, messages between pairs, the order in which members "
        "leave, or the time that NCCL's proxies had data on the network make it RS208. Without a peak the best that "
        "the job reached stands for it, beside which a whole class is never slow: then it is claimed only where a "
        "recorded variable keeps NCCL off the fast way, and with no saving. That the machine has no faster way is not "
        "known.",
    .fix =
        "The variable that the finding names; NCCL_DEBUG=INFO prints the transport in use. NCCL_IB_HCA, "
        "NCCL_SOCKET_IFNAME, NCCL_P2P_LEVEL, NCCL_MIN_CTAS.",
    .cureAt = CureAt::machine,
    .byCalls = true,
    .hint = "Framed are large messages that run far slower than their link can: red is longer than it had to be.",
    .detect = detectUnderUsedLink,
    .missing = missingForUnderUsedLink,
    .repair = healthyLinks,
};

}  // namespace rs204
}  // namespace rankscope::diagnose
