// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/catalogue_entries.h"
#include "analyzer/diagnose/rs302_straggler_node.h"
#include "analyzer/diagnose/rs303_transient.h"
#include "analyzer/diagnose/rs304_uneven_work.h"
#include "analyzer/diagnose/slow_ranks.h"

namespace rankscope::diagnose {
namespace {

CatalogueEntry stragglerNode() {
    constexpr StragglerThresholds slow;
    constexpr StragglerNodeThresholds t;
    CatalogueEntry e{"RS302", "straggler node"};
    e.definition =
        "All ranks of one host compute longer than ranks of other hosts for the same work, and the others wait for "
        "them. As RS301, with only ranks of other hosts to compare "
        "with; one finding for the host in place of one for each rank.";
    e.thresholds = {
        {"ratio", slow.ratio, "x the kernel time on other hosts",
         "clocks of healthy devices of one model differ by 1 to 2 %"},
        {"errors", slow.errors, "standard errors above 1", "noise of single kernels is no straggler"},
        {"alike", t.alike, "of the host's median slowness, on each of its ranks",
         "else some of its devices are slow (RS301), not the host"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Hosts with another model of device. Of two hosts one is always the slower: below the ratio it is not named.";
    e.fix = "Power cap, cooling, driver and firmware of that host; drain it.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

CatalogueEntry transient() {
    constexpr TransientThresholds t;
    CatalogueEntry e{"RS303", "transient stall"};
    e.definition =
        "Some steps are much longer because one rank, not always the same, stalls in them: its host pauses (garbage "
        "collection, checkpoint, I/O), waits for input or the allocator, or its "
        "device runs the same kernels more slowly. A rank's step without waiting for others is compared with its own "
        "median. What it costs is spread over all analysed "
        "steps: the mean, so that one step in fifty that takes half as long again costs 1 %, and stays under the "
        "floor.";
    e.thresholds = {
        {"sigmas", t.sigmas, "robust standard deviations of the rank's own steps",
         "noise of a few hundred steps does not reach it; two modes of steps widen the deviation"},
        {"excess share", t.excessShare, "of the rank's typical step",
         "shorter ones are within what steps of one job differ by"},
        {"rare share", t.rareShare, "of the rank's steps at most",
         "what comes more often is a mode of the job, not an accident"},
        {"fewest events", static_cast<double>(t.fewestEvents), "steps",
         "a single slow step cannot be said to come back: a note"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Steps with more kernels (evaluation, accumulation) are other work and left out; so are steps in which only "
        "communication took longer. A stall of every step is RS4xx or RS301.";
    e.fix = "Look at what the named ranks did in the named steps; move it off the step, or do it on all ranks at once.";
    e.detected = true;
    e.noteByCostOnly = false;  // but for being few
    return e;
}

CatalogueEntry unevenWork() {
    constexpr UnevenWorkThresholds t;
    CatalogueEntry e{"RS304", "uneven work"};
    e.definition =
        "Ranks that should do the same do different amounts of work: more kernels, larger grids, or a few kernels that "
        "take longer in the same "
        "grid while most do not (sequence lengths, tokens per expert), and the others wait for the heaviest, "
        "always the same or another in each step. Compute is compared among ranks of one role: the ranks of a pipeline "
        "stage, or all. The saving is what the step is shorter when "
        "every peer has the mean of their work.";
    e.thresholds = {
        {"ratio", t.ratio, "x the mean of the peers' compute", "the floor, where compute is the whole step"},
        {"different share", t.differentShare, "of the excess in kernels that differ in number, shape or work",
         "else the device is slow (RS301)"},
        {"steps share", t.stepsShare, "of the steps in which a named rank is among the heaviest",
         "with none, those that take turns are named"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Stages of a pipeline differ by design or by RS102: they are not compared. Ranks with an extra duty (logging, "
        "evaluation) show as uneven, rightly.";
    e.fix =
        "Bucket or pack sequences by length; for experts a load-balancing loss and a capacity factor; embedding tables "
        "placed by their lookups.";
    e.detected = true;
    return e;
}

}  // namespace

std::vector<CatalogueEntry> imbalanceEntries() {
    return {stragglerNode(), transient(), unevenWork()};
}

}  // namespace rankscope::diagnose
