// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analyzer/diagnose/catalogue_entries.h"
#include "analyzer/diagnose/detector.h"
#include "analyzer/diagnose/late_launch.h"
#include "analyzer/diagnose/micro_steps.h"
#include "analyzer/diagnose/rs201_overlap.h"
#include "analyzer/diagnose/rs202_small_messages.h"
#include "analyzer/diagnose/rs203_saturation.h"
#include "analyzer/diagnose/rs205_algorithm.h"
#include "analyzer/diagnose/rs209_contention.h"
#include "analyzer/diagnose/rs210_full_precision.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_leaving.h"
#include "analyzer/job/link_probes.h"
#include "analyzer/job/network_edges.h"
#include "analyzer/job/reached_peaks.h"

namespace rankscope::diagnose {

ThresholdEntry floorEntry() {
    return {"floor", CommonThresholds::kFloorShare, "share of the step",
            "what costs less is a note: the spread from run to run of real jobs hides the gain"};
}

ThresholdEntry fewestStepsEntry() {
    return {"fewest steps", CommonThresholds::kFewestSteps, "analysed steps",
            "fewer cannot tell a persistent cause from an accident: inconclusive"};
}

namespace {

CatalogueEntry straggler() {
    constexpr StragglerThresholds t;
    CatalogueEntry e{"RS301", "straggler rank"};
    e.definition =
        "One rank computes longer than its peers for the same work, and the others wait for it. Kernels of the same "
        "name, grid and block are compared step by "
        "step: a rank's median against the median of the other ranks. Most of them must be slower, as a slow device "
        "slows all of them. What it costs is the step time that goes away when its compute takes as long as its "
        "peers'; time that communication would need anyway is not counted.";
    e.thresholds = {
        {"ratio", t.ratio, "x the peers' kernel time", "clocks of healthy devices of one model differ by 1 to 2 %"},
        {"errors", t.errors, "standard errors above 1", "noise of single kernels is no straggler"},
        {"steps share", t.stepsShare, "of the steps", "rare slow steps are another diagnosis (RS303)"},
        {"compared share", t.comparedShare, "of its compute time",
         "with less in common there is nothing to compare with"},
        {"slow kernels", t.slowKernels, "of its kernels, by number and by time",
         "a slow device slows most of them; more work only those that do it (RS304)"},
        {"part of slowness", job::kPartOfSlowness, "of the rank's excess",
         "from here on a kernel is one of the slow ones: memory and arithmetic lose differently to a lower clock"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Kernels with one name and grid whose work depends on the data (attention over documents, grouped experts), "
        "where they are most of the rank's kernels; where they are few it is uneven work (RS304). A rank that only "
        "waits is never named: its kernels are as "
        "fast as its peers'. A slow rank hidden by communication that takes longer anyway is a note.";
    e.fix =
        "Look at that device's clocks, temperature, power cap and neighbours; move the rank; replace the device when "
        "the slowness moves with it.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

CatalogueEntry overlap() {
    constexpr OverlapThresholds t;
    CatalogueEntry e{"RS201", "poor overlap"};
    e.definition =
        "Communication that is exposed although it would fit under compute it may legally overlap: gradients under the "
        "backward pass (its last two thirds of the "
        "compute in front of them, since backward costs twice the forward's flop), all-gathers of sharded parameters "
        "under the compute before them, "
        "reduce-scatters under the compute behind them, updated parameters (ZeRO-1 and 2) under the next forward pass. "
        "Also communication of any size that the host calls only well after the work has ended that its stream was "
        "told "
        "to wait for, while its kernel starts as soon as it is called. Waiting for a late rank is not communication "
        "and does not count.";
    e.thresholds = {
        {"late start", t.lateStart, "of backward",
         "with hooks the first gradients leave in the first layers of backward; later ones did not try to overlap"},
        {"bucket", t.bucketMebi, "MiB", "bucket the saving is predicted with: DDP's default"},
        {"launched too late", LateLaunch::kSlackNs / 1e3, "us",
         "from data to call, and from call to kernel: a launch takes 5 to 10 us, and events are signalled in some us"},
        {"late call share", t.lateCallShare, "of what overlap would save",
         "with less than half of it late calls are not the cause"},
        {"overlap target", t.overlapTarget, "of communication hidden", "the field's target: above it overlap is good"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A model of one layer cannot overlap its gradients. The last bucket, the first all-gather and the last "
        "reduce-scatter of a step cannot be hidden and are not "
        "counted. In a pipeline only the last micro-batch's backward could hide the gradients: there it is a note.";
    e.fix =
        "Buckets of 25 MiB and the framework's hooks (DDP), forward and backward prefetch (FSDP), overlap_comm "
        "(DeepSpeed), an own stream for communication.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry smallMessages() {
    constexpr SmallMessageThresholds t;
    CatalogueEntry e{"RS202", "small-message storm"};
    e.definition =
        "Many collectives of one communicator, op and type that follow each other, each under n* = alpha/beta: "
        "start-up takes more of their time than bytes do, and they "
        "are exposed. alpha and beta are fitted to the run's own collectives, or taken from the link peak where the "
        "sizes differ by less than 4x. The saving is "
        "what the step gains when they are merged into the proposed bucket.";
    e.thresholds = {
        {"fewest messages", static_cast<double>(t.fewestMessages), "per step",
         "a handful of small messages is no storm"},
        {"gap share", t.gapShare, "of a message's time", "with longer gaps something in between needs them apart"},
        {"host call", t.hostCallNs / 1e3, "us",
         "gap up to which messages that start when they are called are apart for the host's calls alone"},
        {"alpha share", t.alphaShare, "of a message's time",
         "from here on start-up costs more than bytes: the size is under n*"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Calls that need each other's results cannot be merged: tensor-parallel all-reduces and all-to-alls are left "
        "out. Small messages that hide behind compute cost nothing.";
    e.fix = "The bucket size named in the finding; gradient accumulation; fusing parameters.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry saturation() {
    constexpr SaturationThresholds t;
    CatalogueEntry e{"RS203", "bandwidth saturation"};
    e.definition =
        "Large messages run at the ceiling of their link, and there are more of them than the compute they may overlap "
        "can hide: nothing is wrong but the volume. The "
        "cost is the transfer time beyond that compute and, where the network hardly rests, its ends, which nothing "
        "can hide: the first gather and the last reduction; or what messages of gradients stand in line for when "
        "backward is over, and parameters that come back when forward begins: whichever is more. Where "
        "the network rests, its ends are what every job has. What overlap or merging could save is theirs (RS201, "
        "RS202). Activations of tensor-parallel ranks hide behind nothing: theirs is too much where it takes as long "
        "as all compute, and by degrees from half of it on. The ceiling of a communicator inside a node is a "
        "rank's port; over nodes it is min(port, k x NIC), k = fewest members on a node.";
    e.thresholds = {
        {"ceiling share", t.ceilingShare, "of the time peak and start-up predict",
         "the rest is protocol overhead and sharing"},
        {"nominal ceiling share", t.nominalShare, "of the time peak and start-up predict",
         "the same where the peak is a specified rate (machine, device table), of which NCCL reaches 0.7 to 0.96"},
        {"busy share", t.busyShare, "of the compute that transfer may lie under",
         "from here on the ends count, too: the first gather and the last reduction"},
        {"restless share", t.restlessShare, "of that compute",
         "from here on they count in full: a network that hardly rests is short of bandwidth"},
        {"fewest messages", static_cast<double>(t.fewestMessages), "a step",
         "with fewer the first and the last are no ends but most of the volume, and smaller ones would hide"},
        {"activation share", t.activationShare, "of compute",
         "from here on activations count as volume, in full where they take as long as all compute"},
        {"late start", OverlapThresholds{}.lateStart, "of backward",
         "gradients that first leave behind it do not stand in line: RS201 measures them so"},
        {"at once", t.atOnceNs / 1e3, "us",
         "from one message to the next of its stream: a launch gap, so the later one stood in line"},
        {"begun share", t.begunShare, "of the time in which parameters come back",
         "so much compute meanwhile means that forward has begun and waits for them"},
        {"large share", t.largeShare, "start-up share", "above it messages are small: RS202 is the question"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A configured peak that is too low makes any link look saturated. Without a peak the verdict is "
        "'inconclusive'.";
    e.fix =
        "Fewer bytes: bf16 gradients, compression hook, gradient accumulation, HSDP, ZeRO-2 instead of 3, a larger "
        "batch per rank.";
    e.detected = true;
    e.noteByCostOnly = false;  // but for what hides
    return e;
}

CatalogueEntry underUsedLink() {
    CatalogueEntry e{"RS204", "under-used link"};
    e.definition =
        "Large collectives and messages of one link class (inside a node, or between nodes) run far under its peak in "
        "every group that uses it. Expected is the time that "
        "peak, start-up, and the recorded algorithm and protocol give at their slow end, so that a wrong protocol "
        "(RS205) does not count; beyond 1.5 times that, "
        "as a slow link leaves the protocol what its format does (LL half). Only transfers beside which none "
        "of their ranks carried another are looked at: contention is no under-used link. Recorded NCCL variables that "
        "keep it off the fast way are named.";
    e.thresholds = {
        {"slow", job::LinkProbeThresholds::kSlow, "x the expected time",
         "healthy links reach 80 to 95 % of their peak, unseen sharing may take a tenth"},
        {"start-up share", job::CollectiveSpeedThresholds::kStartupShare, "of the expected time",
         "above it the message is under n* and says more about latency than about the link"},
        {"shared share", job::CollectiveSpeedThresholds::kSharedShare, "of a transfer beside another",
         "a tenth stays within what peaks are known to"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A configured peak that is too high makes any link look under-used. Where one member's NIC is slow and every "
        "group contains it, this looks the same; groups "
        "without it, messages between pairs, the order in which members leave, or the time that NCCL's proxies had "
        "data on the network make it RS208. Without a peak "
        "the best that the job reached stands for it, beside which a whole class is never slow: then it is claimed "
        "only where a recorded variable keeps NCCL off the fast way, and with "
        "no saving. That the machine has no faster way is not known.";
    e.fix =
        "The variable that the finding names; NCCL_DEBUG=INFO prints the transport in use. NCCL_IB_HCA, "
        "NCCL_SOCKET_IFNAME, NCCL_P2P_LEVEL, NCCL_MIN_CTAS.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

CatalogueEntry algorithm() {
    constexpr AlgorithmThresholds t;
    CatalogueEntry e{"RS205", "wrong algorithm or protocol"};
    e.definition =
        "The algorithm or protocol that the NCCL profiler plugin recorded loses to another for this operation, size "
        "and group. Times are hops x alpha + bus bytes / "
        "(bandwidth x share): ring all-reduce 2(P-1) hops, tree 2 ceil(log2 P); LL reaches a quarter to half of the "
        "bandwidth at 0.2 to 0.4 of the start-up, LL128 0.85 to "
        "0.94 at 0.3 to 0.6, a tree 0.8 to 0.92. The present choice is taken at what was measured within its range, "
        "the other at its slow end. alpha and bandwidth come from "
        "the link peak, else from the fit, else the link carries at least what the job reached over it, with what the "
        "protocol leaves unused.";
    e.thresholds = {
        {"forced", t.forcedRatio, "x the better choice", "NCCL_ALGO or NCCL_PROTO is set: nobody weighed the sizes"},
        {"chosen", t.chosenRatio, "x the better choice",
         "NCCL chose by itself and knows the hardware better than these formulas unless they differ grossly"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "NVLS, CollNet and PAT have no formula here and are never judged. LL128 is proposed only where the run uses "
        "it: elsewhere it may corrupt data. Kernel names prove nothing.";
    e.fix =
        "Unset the variable, or the per-collective syntax (NCCL_PROTO=\"allreduce:Simple\"); a tuner plugin's table "
        "where the setting would hurt other sizes.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry redundant() {
    CatalogueEntry e{"RS206", "redundant communication"};
    e.definition =
        "Within one optimizer step the same sequence of gradient reductions (operation, type, sizes) repeats once per "
        "micro-step, each behind a forward and a backward pass: "
        "only the last is needed, the gradients can be added up locally. The cost is what the step gains without the "
        "others.";
    e.thresholds = {
        {"spacing", MicroStepThresholds::kSpacing, "of a micro-step",
         "micro-steps do the same work: their reductions begin evenly spaced in the compute"},
        {"pause", MicroStepThresholds::kPause, "times the usual distance",
         "a forward pass, half of backward, lies in front of each repeat: two buckets already give 2"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Equal buckets of one backward pass repeat too, but not behind a forward pass each. ZeRO-2 and FSDP hold one "
        "more copy of the gradients without the repeats: where "
        "memory is short they are the price. What hides behind compute costs nothing and is a note.";
    e.fix = "no_sync() around all micro-steps but the last, or the framework's own accumulation.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry tensorParallelSpan() {
    CatalogueEntry e{"RS207", "tensor parallelism across nodes"};
    e.definition =
        "A communicator with the tensor-parallel pattern (collectives of activations that compute waits for) spans "
        "nodes. The cost is what the step gains when its messages "
        "run at the speed inside a node, less what the data-parallel groups lose that move out in exchange.";
    e.thresholds = {floorEntry(), fewestStepsEntry()};
    e.falsePositives =
        "Nodes joined by NVLink (NVL72) count as several here when their hosts differ: tell it with --links, intra and "
        "inter equal. Where nobody told the peak, the best that the job reached inside nodes stands for it; "
        "where that gains too little the verdict is 'inconclusive'.";
    e.fix =
        "Order ranks so that tensor-parallel groups are neighbours on a node, or lower the degree to the ranks of a "
        "node.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

CatalogueEntry slowLink() {
    CatalogueEntry e{"RS208", "slow link or NIC"};
    e.definition =
        "Large transfers that need one rank, pair or node are slower than link peak, algorithm and protocol explain, "
        "and those that do not need it are as fast as they should "
        "be. All groups and pairs of the job are probes; the suspect is the one that every slow probe needs and no "
        "fast one does. Where one group of all ranks is the only "
        "probe, who leaves last tells: a ring's slowest edge is busy to the end, so its two ends leave last, and a "
        "slow rank in the middle of three. Between nodes NCCL's proxy "
        "threads tell, through the profiler plugin: the sender of the slow edge has its buffers on the network "
        "(SendWait) far longer for the same bytes than the others, who wait for "
        "their GPU. That is timed on one host's clock. Where nobody told the peak, probes are measured by the fastest "
        "of their class, and a single group by its own other "
        "edges: the senders' times on the network, or how much of a chunk's time the others leave earlier. Such a "
        "ratio is 'at least'.";
    e.thresholds = {
        {"slow", job::LinkProbeThresholds::kSlow, "x the expected time",
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
        {"persistent", job::LeavingThresholds::kPersistent, "of the large collectives agree on who leaves last",
         "a disturbed one in four is let pass"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Other jobs on the same switch. The two ends of a rail between two nodes share all their traffic: both are "
        "named. With one rank on each of two nodes nothing is left to compare with: that is RS204.";
    e.fix =
        "Check that rank's or host's link: negotiated rate, cable, PCIe width, error counters; leave the node out and "
        "compare.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

CatalogueEntry contention() {
    constexpr ContentionThresholds t;
    CatalogueEntry e{"RS209", "communication slows compute"};
    e.definition =
        "Kernels of one name, grid and block take longer beside NCCL kernels than alone, on every rank: communication "
        "takes multiprocessors and memory bandwidth. "
        "Only kernels of equal work are compared: those that ran alone often enough and about as long each time; one "
        "name and grid whose time alone depends on the data says nothing. The lost "
        "share is (duration - median alone) / time beside communication, also of kernels that are beside it for a part "
        "of their time; the cost is what the step gains without the loss.";
    e.thresholds = {
        {"slowdown", t.slowdown, "x the time alone",
         "NCCL's few multiprocessors cost a few percent on healthy devices"},
        {"errors", t.errors, "standard errors of the ranks' mean above no slowdown",
         "noise of single kernels is no contention"},
        {"kernels alone", facts::Contention::kFewestAlone, "of one name, grid and block",
         "fewer do not show whether they are equal work"},
        {"shortest", facts::Contention::kShortestNs / 1e3, "us alone",
         "shorter kernels are bound by latency: beside any busy device they take microseconds longer, and fewer "
         "channels change nothing"},
        {"range alone", facts::Contention::kAloneRange, "p90 / p10 of their times",
         "beyond, their work depends on the data"},
        {"every rank", t.everyRank, "of the median loss on each rank, within its standard error",
         "one rank alone is a slow device (RS301)"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Kernels with one name and grid whose work depends on the data, when the heavier ones happen to run beside "
        "communication.";
    e.fix =
        "NCCL_MAX_CTAS / fewer channels, as long as communication stays hidden; NVLS or copy engines where the "
        "hardware has them.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry fullPrecision() {
    constexpr FullPrecisionThresholds t;
    CatalogueEntry e{"RS210", "full-precision gradients"};
    e.definition =
        "Gradients are reduced in fp32 although the model computes in 16 bit, as the type of gathered parameters or "
        "activations, or the names of the kernels, show. The cost "
        "is what the step gains with half the bytes: what hides behind compute costs nothing.";
    e.thresholds = {
        {"compute share", t.computeShare, "of compute in 16-bit kernels",
         "mixed precision keeps norms and the optimizer in fp32, the products are 16 bit"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "fp32 sums may be wanted for accuracy over many replicas: the finding says what they cost, not that they are "
        "wrong. TF32 models compute in fp32 and are not named.";
    e.fix = "bf16 compression hook (DDP), reduce_dtype (FSDP), communication_data_type (DeepSpeed).";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry later(const char* id, const char* title, const char* definition, const char* fix) {
    CatalogueEntry e{id, title, definition};
    e.fix = fix;
    return e;
}

std::vector<CatalogueEntry> makeCatalogue() {
    return {
        overlap(),
        smallMessages(),
        saturation(),
        underUsedLink(),
        algorithm(),
        redundant(),
        tensorParallelSpan(),
        slowLink(),
        contention(),
        fullPrecision(),
        straggler(),
        later("RS501", "missing rank", "All members but some entered a collective.",
              "Look at the rank that is missing."),
        later("RS502", "mismatched collective", "Members disagree on op, size, dtype, root or order.",
              "Compare both sides at the first divergence."),
        later("RS503", "root cause behind a timeout", "One rank failed first, the others only wait.",
              "Look at that rank's error."),
    };
}

}  // namespace

std::span<const CatalogueEntry> catalogue() {
    static const std::vector<CatalogueEntry> kEntries = [] {
        std::vector<CatalogueEntry> entries = makeCatalogue();
        for (const auto& family : {pipelineEntries(), imbalanceEntries(), hostEntries()})
            entries.insert(entries.end(), family.begin(), family.end());
        std::sort(entries.begin(), entries.end(),
                  [](const CatalogueEntry& a, const CatalogueEntry& b) { return a.id < b.id; });
        return entries;
    }();
    return kEntries;
}

const CatalogueEntry* findCatalogueEntry(std::string_view id) {
    std::string wanted(id);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const CatalogueEntry& entry : catalogue())
        if (entry.id == wanted) return &entry;
    return nullptr;
}

std::string renderCatalogueEntry(const CatalogueEntry& entry) {
    std::string out = fmt::format("{} {}\n\n{}\n", entry.id, entry.title, entry.definition);
    if (!entry.detected)
        return out +
               fmt::format(
                   "\nUsual fix: {}\n\nCatalogued, but not detected yet: a report without it says nothing about it.\n",
                   entry.fix);
    out += "\nThresholds\n";
    for (const ThresholdEntry& t : entry.thresholds)
        out += fmt::format("  {:<18} {:.4g} {} ({})\n", t.name, t.value, t.unit, t.reason);
    out += "\nFalse positives\n  " + entry.falsePositives + "\n\nFix\n  " + entry.fix + "\n";
    return out;
}

}  // namespace rankscope::diagnose
