// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/catalogue_entries.h"
#include "analyzer/diagnose/rs101_bubble.h"
#include "analyzer/diagnose/rs102_stage_imbalance.h"
#include "analyzer/diagnose/rs103_p2p_exposed.h"

namespace rankscope::diagnose {
namespace {

CatalogueEntry bubble() {
    constexpr BubbleThresholds t;
    CatalogueEntry e{"RS101", "pipeline bubble"};
    e.definition =
        "Idle or receive-wait time of the pipeline's stages inside a step, as a share of the step, averaged over the "
        "stages. It is compared with what the inferred "
        "schedule leaves idle by itself, (P-1)/(M V + P-1) for P stages, M micro-batches and V virtual stages: 'too "
        "few micro-batches' when that alone is over the "
        "threshold, 'more than the schedule explains' when playing the schedule with the stages' measured work and "
        "transfers leaves less idle than there is. "
        "Waiting that a deeper finding explains (a slow rank, a heavy stage, a stalled host) is not counted.";
    e.thresholds = {
        {"share", t.share, "of the step", "the field's target for a pipeline bubble"},
        {"unexplained", t.unexplained, "of the step", "noise of kernels and launch gaps stay under it"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A stage that is heavier than the others makes them wait: that is stage imbalance (RS102) and is not counted "
        "as a bubble. A stage whose device is slow is "
        "RS301, which keeps its share of the waiting. A ring of sends whose counts fit no number of virtual stages is "
        "left out.";
    e.fix =
        "More micro-batches per step, or interleaved virtual stages. GPipe keeps the activations of all M "
        "micro-batches, 1F1B of at most P.";
    e.detected = true;
    e.hasSettings = true;
    e.judgedByCost = false;    // but against what its schedule should leave
    e.noteByCostOnly = false;  // but for what the schedule explains
    return e;
}

CatalogueEntry stageImbalance() {
    constexpr StageImbalanceThresholds t;
    CatalogueEntry e{"RS102", "stage imbalance"};
    e.definition =
        "Work per pipeline stage differs, and the slowest stage sets the beat: compute, copies and the communication "
        "inside the stage, over all its tensor- and "
        "data-parallel ranks, without the optimizer. Slower devices are taken out by comparing same kernels with the "
        "other ranks. What it costs is the schedule "
        "played with the measured stages against the same schedule with equal ones.";
    e.thresholds = {
        {"excess", t.excess, "of the mean stage",
         "an embedding lookup, a loss and the noise of kernels leave up to this much in sound jobs"},
        {"slower", t.slower, "x the peers' kernel time", "that part is a slow device (RS301), not more work"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A model of few, large layers cannot be cut more evenly: then the last stage's head or the first one's "
        "embedding is what is left to split.";
    e.fix = "Move layers' worth of work from the slowest stage to the lightest; the finding says how much.";
    e.detected = true;
    e.noteByCostOnly = false;  // but for what the schedule explains
    return e;
}

CatalogueEntry exposedP2p() {
    constexpr P2pThresholds t;
    CatalogueEntry e{"RS103", "pipeline p2p exposed"};
    e.definition =
        "Sends and receives between stages take time in which compute stands still, on the critical path: the schedule "
        "played with the measured message time against "
        "the same with none, and where stages differ a replay of the whole job. Waiting for a neighbour that is not "
        "ready is no transfer and does not count.";
    e.thresholds = {
        {"share", t.share, "of the step",
         "sends of plain 1F1B are never quite hidden; below it the bubble matters more"},
        {"boundary share", t.boundaryShare, "of the step",
         "the same where one boundary has it all: that one crosses nodes by design, and a pipeline may stand still for "
         "a tenth"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A link that is slower than its siblings (RS208) or than it should be (RS204) makes messages long: those "
        "findings keep that time.";
    e.fix = "Overlap p2p with compute, use larger micro-batches, place neighbouring stages close together.";
    e.detected = true;
    e.noteByCostOnly = false;  // but for what the schedule explains
    return e;
}

}  // namespace

std::vector<CatalogueEntry> pipelineEntries() {
    return {bubble(), stageImbalance(), exposedP2p()};
}

}  // namespace rankscope::diagnose
