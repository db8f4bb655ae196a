// SPDX-License-Identifier: Apache-2.0
// Training jobs played on paper: kernels and collectives with the times a simple clock gives them, for detectors to
// look at.
#pragma once

#include <map>
#include <string>

#include "tests/unit/analyzer/trace_fixture.h"

namespace rankscope::test {

struct Wire {
    double alphaNs = 60'000;
    double busBytesPerNs = 100;  // = GB/s
    double timeNs(store::Op op, double bytes, int ranks) const;
};

struct JobShape {
    int ranks = 8;
    int ranksPerHost = 4;
    int layers = 12;
    int steps = 6;              // the first is warm-up
    double forwardNs = 2e6;     // of a layer; backward takes twice as long
    double layerBytes = 100e6;  // gradients or parameters
    double noise = 0.02;
    unsigned seed = 1;
    std::map<int, double> slow;  // rank: factor
    Wire wire;
    bool linksKnown = true;
};

enum class Buckets { perLayer, afterBackward, single, computeStream, awaited };  // awaited: compute stops behind each

struct DdpJob : JobShape {
    Buckets buckets = Buckets::perLayer;
    int messagesPerLayer = 4;
    std::map<std::string, double> slowKernels;  // on all ranks: name, factor
    int slowFrom = 0, slowUntil = 1'000'000;    // the steps in which `slow` and they hold, the last one excluded
    bool ranksAlwaysSlow = false;               // `slow` holds in all steps
    double growth = 0;                          // of the factor of `slow`, with each step since slowFrom
    int singleSteps = 0;  // so many analysed steps, from the first on, send all in one message behind backward
};
TraceFixture playDdp(const DdpJob& job);

struct FsdpJob : JobShape {
    bool prefetch = true;
    bool overlap = true;
    int dueEvery = 0;  // above 0: prefetch leaves out each so many-th gather
};
TraceFixture playFsdp(const FsdpJob& job);

struct PipelineJob : JobShape {
    int stages = 4;  // ranks = stages x replicas
    int microBatches = 40;
    bool gpipe = false;
    int virtualStages = 1;        // above 1: interleaved 1F1B; micro-batches must be a multiple of the stages
    bool head = false;            // the last virtual stage has a layer more
    double messageBytes = 16e6;   // of an activation
    std::map<int, double> heavy;  // stage: more work (other grid) by this factor
};
TraceFixture playPipeline(const PipelineJob& job);

}  // namespace rankscope::test
