// SPDX-License-Identifier: Apache-2.0
// Whether messages of one kind got slower, whatever their number and size, and what of that NCCL's other way with them
// explains.
#pragma once

#include <string>

#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Messages of size classes that both sides send; ns per step of the slow side.
struct MessageSpeed {
    double newNs = 0;              // what they take
    double addedNs = 0;            // of it, more than on the base side
    double otherWayNs = 0;         // of `addedNs`: at most what another algorithm or protocol costs on the same link
    double sameWayGrowth = 0;      // share by which those grew that go the same way; 0 without such
    TrafficSummary before, after;  // the class with most of `otherWayNs`

    double growth() const { return newNs > addedNs ? addedNs / (newNs - addedNs) : 0; }
};

/// Of all traffic of that trafficName(). A message takes a start-up and its bytes over the link's rate, so that larger
/// ones take less per byte and smaller ones less each: what is slower by both is slower for another reason than its
/// size. Where no class is on both sides all are compared as one.
MessageSpeed compareSpeed(const SideMeans& base, const SideMeans& now, const std::string& traffic);

/// The same of two sums of traffic.
MessageSpeed compareSpeed(const TrafficSummary& before, const TrafficSummary& after);

}  // namespace rankscope::compare
