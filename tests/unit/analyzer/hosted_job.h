// SPDX-License-Identifier: Apache-2.0
// A data-parallel job played on paper with its hosts: launches, waits, copies and allocations, each where a simple
// clock puts it.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::test {

struct HostedJob : JobShape {
    HostedJob() {
        layerBytes = 20e6;
        steps = 12;
    }
    std::set<int> troubled;            // ranks with host trouble; empty: all
    double inputNs = 20e3;             // host time in front of each step
    bool inputInRange = false;         // in a range "next_batch"
    std::map<int, double> lateInputs;  // step: instead
    int readsPerStep = 0;              // values read back, the host works readNs behind each
    double readNs = 1e6;
    const char* readCall = "cudaStreamSynchronize";  // that the host waits in
    bool copiesInput = false;                        // to the device, from pinned memory, in front of each of them
    int releasesPerStep = 0;                         // cudaFree and cudaMalloc, allocatorNs each
    bool poolFills = false;                          // half as many in each step as in the one before
    double allocatorNs = 300e3;
    double pageableBytes = 0;        // copied from pageable memory in the middle of a step, at 10 GB/s
    int pieces = 0;                  // tiny kernels of 2 us in front of each step, launched in launchNs each
    std::map<int, int> fewerPieces;  // rank: instead
    double launchNs = 5e3;
    std::map<int, std::pair<int, double>> pauses;     // step: rank, ns in which its host does nothing
    std::map<int, std::pair<int, double>> extraWork;  // step: rank, share of larger grids in that step; step -1: all
    bool hostRecorded = true;
    // Hosts that stand still inside small calls, in front of some launches of each step.
    std::set<int> starved;
    int pausesPerStep = 2;
    double pauseNs = 25e6;
    bool pauseInOneCall = false;  // always in the same call
    bool pauseTogether = false;   // all at the same launches
};
TraceFixture playHosted(const HostedJob& job);

std::string notedIn(const report::Report& report);
const job::Finding* findingOf(const report::Report& report, const std::string& id);

}  // namespace rankscope::test
