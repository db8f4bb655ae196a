// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct SmallMessageThresholds {
    int fewestMessages = 8;      // per step in runs that could be merged: a handful of small messages is no storm
    double gapShare = 0.5;       // messages follow each other when the gap is under this share of a message's own time:
                                 // nothing in between needs them apart
    double hostCallNs = 50'000;  // a host that calls one after the other takes up to this for each, with what the
                                 // framework does around it
    double startupsPerBucket =
        10;  // length of a proposed bucket where no model tells a better one: start-up is a tenth of its time then
    double alphaShare = 0.5;  // start-up share of a message's time from which it is small (bytes < n*)
};

void detectSmallMessages(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForSmallMessages(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
