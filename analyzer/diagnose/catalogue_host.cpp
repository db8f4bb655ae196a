// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/pinned_copies.h"
#include "analyzer/diagnose/catalogue_entries.h"
#include "analyzer/diagnose/rs401_launch_bound.h"
#include "analyzer/diagnose/rs406_starved.h"
#include "analyzer/facts/host_pauses.h"

namespace rankscope::diagnose {
namespace {

CatalogueEntry launchBound() {
    constexpr LaunchBoundThresholds t;
    CatalogueEntry e{"RS401", "launch-bound"};
    e.definition =
        "The device idles while kernels start as soon as they are launched: many short kernels, and a host that cannot "
        "launch them as fast as they run. Counted is the time "
        "in which no kernel computes and the next one was submitted only after the device had run dry, waiting for "
        "other ranks left out. The saving is what the step "
        "is shorter when the launches are never late, on whichever rank then sets the pace.";
    e.thresholds = {
        {"fewest gaps", static_cast<double>(t.fewestGaps), "per step",
         "a handful of late launches is something the host does there, not its pace"},
        {"largest share", t.largestShare, "of the late time in one gap", "above it that one gap is the matter"},
        {"gaps share", t.gapsShare, "of the step's kernels", "part of a step can be bound while the rest is not"},
        {"longest gap", static_cast<double>(t.longestGapNs) / 1e6, "ms",
         "in longer ones the host does something else than launch"},
        {"launch", static_cast<double>(t.launchNs) / 1e3, "us",
         "from a call to its kernel: gaps in which the host called communication are that storm's (RS202)"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "A profiler that records every call slows the host's launches: compare the step time with the unprofiled one. "
        "Launches that are late because the host had just "
        "synchronised are RS402, because it allocates RS404.";
    e.fix = "CUDA graphs, torch.compile, fused kernels and optimizers, a larger micro-batch.";
    e.detected = true;
    return e;
}

CatalogueEntry synchronisation() {
    CatalogueEntry e{"RS402", "synchronisation stall"};
    e.definition =
        "The device idles behind a call that made the host wait for it: cudaStreamSynchronize, cudaDeviceSynchronize, "
        "cudaEventSynchronize, a copy that blocks (.item(), .cpu()). "
        "The time the host spends inside the call costs nothing while the device works; what counts begins when the "
        "device has run dry and ends when the first "
        "operation submitted after the call starts.";
    e.thresholds = {floorEntry(), fewestStepsEntry()};
    e.falsePositives =
        "Reading the loss once per step costs a launch and stays under the floor. A wait for the next batch in front "
        "of the step is RS403, an allocation RS404, a copy from "
        "pageable memory RS405, also when a synchronisation emptied the queue before.";
    e.fix =
        "Read values every so many steps, or asynchronously and a step later; do host work before the call that waits, "
        "not behind it.";
    e.detected = true;
    return e;
}

CatalogueEntry input() {
    CatalogueEntry e{"RS403", "input stall"};
    e.definition =
        "The device idles while the host is inside a range or an operation that names data loading (DataLoader, "
        "next_batch, data, input…), wherever that lies; or, where the "
        "recording does not tell what hosts did besides calls of CUDA, at the start of the step while the host makes "
        "none. On one rank or on all: ranks that stall are named, the "
        "others wait for them. Where some steps alone are hit, the mean over all counts.";
    e.thresholds = {floorEntry(), fewestStepsEntry()};
    e.falsePositives =
        "Host work at the start of a step that is no data loading (logging, a scheduler) looks the same without "
        "ranges: mark data loading with an NVTX range. The lower end of "
        "the saving is with workers that take cores from the process that launches, and hand over memory that it has "
        "to map.";
    e.fix = "More workers, prefetching, pinned memory, faster storage or decoding.";
    e.detected = true;
    return e;
}

CatalogueEntry allocator() {
    CatalogueEntry e{"RS404", "allocator churn"};
    e.definition =
        "cudaMalloc and cudaFree in steps long after warm-up. Both take the host's time, and cudaFree waits for the "
        "device to finish: the device idles until the host has "
        "launched again. Counted is that idleness, not the calls.";
    e.thresholds = {floorEntry(), fewestStepsEntry()};
    e.falsePositives =
        "Allocations in the first steps fill a caching allocator's pool: warm-up is left out, and under three steps "
        "nothing is said.";
    e.fix = "expandable_segments, a larger or never released pool, a lower peak, buffers allocated once.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry pageable() {
    CatalogueEntry e{"RS405", "pageable copies"};
    e.definition =
        "Copies of more than 64 KiB between device and pageable host memory. The driver stages them piece by piece "
        "through pinned memory: they are slower, and the call "
        "returns only when they are done. Counted is their exposed time, as far as copies from pinned memory on a "
        "stream of their own would hide under the step's compute, and the "
        "idleness behind the calls.";
    e.thresholds = {
        {"pinned rate", costs::kUnseenPinnedGbps, "GB/s, when the run has no pinned copy to compare with",
         "PCIe 4.0 x16, the slowest host link of devices that train today"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Small copies (a loss value) are staged at once and not counted. Traces whose copies do not tell the kind of "
        "memory show nothing.";
    e.fix = "pin_memory, non_blocking, a copy stream of its own.";
    e.detected = true;
    e.hasSettings = true;
    return e;
}

CatalogueEntry starved() {
    constexpr StarvedThresholds t;
    CatalogueEntry e{"RS406", "host starved"};
    e.definition =
        "Hosts stand still inside operations and calls that usually take microseconds, different ones each time, and "
        "not all ranks at the same time: the process does not get the "
        "cores it needs. Counted is the time in which the device has nothing to do meanwhile, between two exchanges "
        "that of the rank that lost most.";
    e.thresholds = {
        {"pause", facts::PauseThresholds::kFactor, "x the median of the same name",
         "no load of the same work varies so much"},
        {"shortest pause", static_cast<double>(facts::PauseThresholds::kShortestNs) / 1e6, "ms",
         "shorter ones are page faults, locks and interrupts"},
        {"usual time", static_cast<double>(facts::PauseThresholds::kLongestUsualNs) / 1e3, "us at most",
         "what usually takes longer does real work, which may vary"},
        {"fewest pauses", static_cast<double>(t.fewestPauses), "of a rank", "fewer are accidents"},
        {"fewest kinds", static_cast<double>(t.fewestKinds), "different operations and calls",
         "a lock, a file or a full queue is found in one or two"},
        {"largest share", t.largestShare, "of a rank's paused time in one of them", "above it that one is the matter"},
        {"together", t.togetherShare, "of a rank's paused time in which all others pause",
         "something stops them all then: a file system, a profiler"},
        floorEntry(),
        fewestStepsEntry(),
    };
    e.falsePositives =
        "Garbage collection of Python on some ranks looks alike: gc.freeze() tells. Calls that may wait for the device "
        "are left out, and so are first uses.";
    e.fix = "Cores for each rank, cgroup quota, pinning, OMP_NUM_THREADS, no other processes on the host.";
    e.detected = true;
    e.cureAt = CureAt::machine;
    return e;
}

}  // namespace

std::vector<CatalogueEntry> hostEntries() {
    return {launchBound(), synchronisation(), input(), allocator(), pageable(), starved()};
}

}  // namespace rankscope::diagnose
