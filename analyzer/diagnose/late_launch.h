// SPDX-License-Identifier: Apache-2.0
// Communication whose host calls come late: its data are there, its stream is free, compute goes on or has nothing more
// to do, and the kernel starts only when it is called. What that costs is a difference of two step models: as recorded,
// and with every call made in time.
#pragma once

#include <set>

#include "analyzer/diagnose/critical_step.h"

namespace rankscope::diagnose {

struct LateLaunch {
    double savedNs = 0;     // of the step, with calls in time
    size_t calls = 0;       // of the communicators, with known readiness
    size_t late = 0;        // of them: began as soon as they were called, well after their data were there
    double latenessNs = 0;  // median of the late ones

    static constexpr double kSlackNs = 20e3;  // a launch takes 5 to 10 us from call to kernel, and events are signalled
                                              // in some us; twice that is no launch latency
};

/// For the step's own tasks. `repaired`: communicators whose calls are taken to be in time already (another finding has
/// them).
LateLaunch lateLaunch(const CriticalStep& step, const std::set<int64_t>& repaired);

}  // namespace rankscope::diagnose
