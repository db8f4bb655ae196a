// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analyzer/detectors/catalogue_entries.h"
#include "analyzer/detectors/detector.h"
#include "analyzer/detectors/rs201_overlap.h"
#include "analyzer/detectors/rs202_small_messages.h"
#include "analyzer/detectors/rs203_saturation.h"
#include "analyzer/detectors/slow_ranks.h"

namespace rankscope::analyzer {

ThresholdEntry floorEntry() {
    return {"floor", CommonThresholds::kFloorShare, "share of the step", "what costs less is a note: the spread from run to run of real jobs hides the gain"};
}

ThresholdEntry fewestStepsEntry() {
    return {"fewest steps", CommonThresholds::kFewestSteps, "analysed steps", "fewer cannot tell a persistent cause from an accident: inconclusive"};
}

namespace {

CatalogueEntry straggler() {
    constexpr StragglerThresholds t;
    CatalogueEntry e{"RS301", "straggler rank"};
    e.definition =
        "One rank computes longer than its peers for the same work, and the others wait for it. Kernels of the same name, grid and block are compared step by "
        "step: a rank's median against the median of the other ranks. What it costs is the step time that goes away when its compute takes as long as its "
        "peers'; time that communication would need anyway is not counted.";
    e.thresholds = {
        {"ratio", t.ratio, "x the peers' kernel time", "clocks of healthy devices of one model differ by 1 to 2 %"},
        {"errors", t.errors, "standard errors above 1", "noise of single kernels is no straggler"},
        {"steps share", t.stepsShare, "of the steps", "rare slow steps are another diagnosis (RS303)"},
        {"compared share", t.comparedShare, "of its compute time", "with less in common there is nothing to compare with"},
        floorEntry(), fewestStepsEntry(),
    };
    e.falsePositives =
        "Kernels with one name and grid whose work depends on the data (sparse attention, experts). A rank that only waits is never named: its kernels are as "
        "fast as its peers'. A slow rank hidden by communication that takes longer anyway is a note.";
    e.fix = "Look at that device's clocks, temperature, power cap and neighbours; move the rank; replace the device when the slowness moves with it.";
    e.detected = true;
    return e;
}

CatalogueEntry overlap() {
    constexpr OverlapThresholds t;
    CatalogueEntry e{"RS201", "poor overlap"};
    e.definition =
        "Communication that is exposed although it would fit under compute it may legally overlap: gradients under the backward pass (its last two thirds of the "
        "compute in front of them, since backward costs twice the forward's flop), all-gathers of sharded parameters under the compute before them, "
        "reduce-scatters under the compute behind them. Waiting for a late rank is not communication and does not count.";
    e.thresholds = {
        {"late start", t.lateStart, "of backward", "with hooks the first gradients leave in the first layers of backward; later ones did not try to overlap"},
        {"bucket", t.bucketMebi, "MiB", "bucket the saving is predicted with: DDP's default"},
        {"overlap target", t.overlapTarget, "of communication hidden", "the field's target: above it overlap is good"},
        floorEntry(), fewestStepsEntry(),
    };
    e.falsePositives =
        "A model of one layer cannot overlap its gradients. The last bucket, the first all-gather and the last reduce-scatter of a step cannot be hidden and are not "
        "counted. In a pipeline only the last micro-batch's backward could hide the gradients: there it is a note.";
    e.fix = "Buckets of 25 MiB and the framework's hooks (DDP), forward and backward prefetch (FSDP), overlap_comm (DeepSpeed), an own stream for communication.";
    e.detected = true;
    return e;
}

CatalogueEntry smallMessages() {
    constexpr SmallMessageThresholds t;
    CatalogueEntry e{"RS202", "small-message storm"};
    e.definition =
        "Many collectives of one communicator, op and type that follow each other, each under n* = alpha/beta: start-up takes more of their time than bytes do, and they "
        "are exposed. alpha and beta are fitted to the run's own collectives, or taken from the link peak where the sizes differ by less than 4x. The saving is "
        "what the step gains when they are merged into the proposed bucket.";
    e.thresholds = {
        {"fewest messages", static_cast<double>(t.fewestMessages), "per step", "a handful of small messages is no storm"},
        {"gap share", t.gapShare, "of a message's time", "with longer gaps something in between needs them apart"},
        {"alpha share", t.alphaShare, "of a message's time", "from here on start-up costs more than bytes: the size is under n*"},
        floorEntry(), fewestStepsEntry(),
    };
    e.falsePositives = "Calls that need each other's results cannot be merged: tensor-parallel all-reduces and all-to-alls are left out. Small messages that hide behind compute cost nothing.";
    e.fix = "The bucket size named in the finding; gradient accumulation; fusing parameters.";
    e.detected = true;
    return e;
}

CatalogueEntry saturation() {
    constexpr SaturationThresholds t;
    CatalogueEntry e{"RS203", "bandwidth saturation"};
    e.definition =
        "Large messages run at the ceiling of their link, and there are more of them than the compute they may overlap can hide: nothing is wrong but the volume. The "
        "cost is the transfer time beyond that compute; what overlap or merging could save is theirs (RS201, RS202). The ceiling of a communicator inside a node is a "
        "rank's port; over nodes it is min(port, k x NIC), k = fewest members on a node.";
    e.thresholds = {
        {"ceiling share", t.ceilingShare, "of the time peak and start-up predict", "the rest is protocol overhead and sharing"},
        {"large share", t.largeShare, "start-up share", "above it messages are small: RS202 is the question"},
        floorEntry(), fewestStepsEntry(),
    };
    e.falsePositives = "A configured peak that is too low makes any link look saturated. Without a peak the verdict is 'inconclusive'.";
    e.fix = "Fewer bytes: bf16 gradients, compression hook, gradient accumulation, HSDP, ZeRO-2 instead of 3, a larger batch per rank.";
    e.detected = true;
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
        later("RS204", "under-used link", "Large messages run far under the ceiling of their own link class or of their siblings.", "The network interface, P2P/SHM or channel setting that is wrong."),
        later("RS205", "wrong algorithm or protocol", "The algorithm or protocol NCCL used loses to another for this op, size and group.", "NCCL_ALGO / NCCL_PROTO per collective, or a tuner table."),
        later("RS206", "redundant communication", "The same data is communicated more often than needed.", "no_sync, reshard_after_forward, broadcast_buffers."),
        later("RS207", "tensor parallelism across nodes", "A communicator with the tensor-parallel pattern spans nodes.", "Rank order or TP degree that keeps it inside a node."),
        later("RS208", "slow link or NIC", "One pair, rank, node or rail is slower than its siblings for the same sizes.", "Check that link."),
        later("RS209", "communication slows compute", "The same kernel is slower while NCCL runs beside it.", "NCCL_MAX_CTAS, fewer channels."),
        later("RS210", "full-precision gradients", "Gradients are reduced in fp32 where parameters compute in 16 bit.", "bf16/fp16 compression hook, reduce_dtype."),
        straggler(),
        later("RS501", "missing rank", "All members but some entered a collective.", "Look at the rank that is missing."),
        later("RS502", "mismatched collective", "Members disagree on op, size, dtype, root or order.", "Compare both sides at the first divergence."),
        later("RS503", "root cause behind a timeout", "One rank failed first, the others only wait.", "Look at that rank's error."),
    };
}

}  // namespace

std::span<const CatalogueEntry> catalogue() {
    static const std::vector<CatalogueEntry> kEntries = [] {
        std::vector<CatalogueEntry> entries = makeCatalogue();
        for (const auto& family : {pipelineEntries(), imbalanceEntries(), hostEntries()}) entries.insert(entries.end(), family.begin(), family.end());
        std::sort(entries.begin(), entries.end(), [](const CatalogueEntry& a, const CatalogueEntry& b) { return a.id < b.id; });
        return entries;
    }();
    return kEntries;
}

const CatalogueEntry* findCatalogueEntry(std::string_view id) {
    std::string wanted(id);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const CatalogueEntry& entry : catalogue())
        if (entry.id == wanted) return &entry;
    return nullptr;
}

std::string renderCatalogueEntry(const CatalogueEntry& entry) {
    std::string out = fmt::format("{} {}\n\n{}\n", entry.id, entry.title, entry.definition);
    if (!entry.detected) return out + fmt::format("\nUsual fix: {}\n\nCatalogued, but not detected yet: a report without it says nothing about it.\n", entry.fix);
    out += "\nThresholds\n";
    for (const ThresholdEntry& t : entry.thresholds) out += fmt::format("  {:<18} {:.4g} {} ({})\n", t.name, t.value, t.unit, t.reason);
    out += "\nFalse positives\n  " + entry.falsePositives + "\n\nFix\n  " + entry.fix + "\n";
    return out;
}

}  // namespace rankscope::analyzer
