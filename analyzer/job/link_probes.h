// SPDX-License-Identifier: Apache-2.0
// What the job's own traffic says about its links: each communicator and each pair of neighbours is a probe that
// touches some ranks, and was as fast as its links should be, or slower.
#pragma once

#include <vector>

#include "analyzer/job/finding.h"

namespace rankscope::job {

struct Analysis;

struct LinkProbe {
    int64_t communicatorId = 0;
    bool pair = false;  // messages from ranks[0] to ranks[1]; else all members of the communicator
    bool betweenNodes = false;
    std::vector<int> ranks;     // members; of a pair: sender, receiver
    double slowness = 1;        // median of measured over expected time
    double busBytesPerNs = 0;   // median reached
    double peakBytesPerNs = 0;  // what the expectation rests on
    bool atLeast = false;       // that is a lower bound, and so is the slowness
    size_t samples = 0;
    std::vector<EvidenceRow> rows;

    bool slow() const;
    bool touches(int rank) const;
};

struct LinkProbeThresholds {
    // Healthy links reach 70 to 96 % of a specified rate with NCCL (isNominal), nearly all of a measured one, and a
    // tenth may go to sharing that went unseen: under two thirds something is wrong.
    static constexpr double kSlow = 1.5;
    // All links alike against a specified rate: eight A100 at 0.78 of it in nccl-tests and at 0.62 in a real step (186
    // of 300 GB/s) are healthy; half is not.
    static constexpr double kSlowNominal = 2;
};

/// All probes with enough large, undisturbed messages, expected times from the link peaks. Where those are what the job
/// reached, the fastest probes are the measure of the others. Detectors read the result, analysis.linkProbes.
std::vector<LinkProbe> probeLinks(const Analysis& analysis);

/// Groups of experts as probes of links: undisturbed all-to-alls against what their busiest rank's bytes take at peak.
/// NCCL reaches less of the peak with messages than with collectives, and how much less nobody knows, so groups are
/// compared with the best one of their class of links: `slowness` is 1 for that, and a group without another like it is
/// no probe.
std::vector<LinkProbe> exchangeProbes(const Analysis& analysis);

}  // namespace rankscope::job
