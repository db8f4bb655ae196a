// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct SaturationThresholds {
    double ceilingShare =
        0.8;  // of the time the link's peak and start-up predict: the rest is protocol overhead and sharing
    double nominalShare = 0.65;  // the same where the peak is a rate by specification (isNominal): NCCL reaches 0.7 to
                                 // 0.96 of it; below, RS204 speaks of the link (LinkProbeThresholds::kSlow)
    double busyShare =
        0.7;  // of the compute that transfer may lie under: from here on the ends of communication count, too
    double restlessShare =
        0.9;  // and from here on in full: a network that hardly rests is short of bandwidth, at its ends as in between
    int fewestMessages =
        4;  // of which the first and the last are ends: one of fewer is half of the volume, and smaller ones would hide
    double activationShare =
        0.5;  // of compute: from here, a third of the step, to all of it what activations take counts more and more
    double atOnceNs =
        10e3;  // from one message to the next of its stream: a launch gap, so that the later one stood in line
    double begunShare = 0.2;  // of the time in which parameters come back that compute runs: forward has begun, and
                              // waits for them one after the other
    double largeShare =
        0.5;  // start-up share above which messages are small: then RS202 is the question, not bandwidth
};

void detectSaturation(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForSaturation(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
