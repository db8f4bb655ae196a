// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// One number of one run.
struct MetricValue {
    std::string name;
    const char* unit = "ns";
    bool higherIsBetter = false;
    bool byCategory = true;  // rests on device records of all categories; false: on the steps alone
    double value = 0;
};

/// Numbers of a run by unique name, always in the same order. Times are per step, means over ranks.
std::vector<MetricValue> metricsOf(const RunSummary& run);

/// "16 MiB to 64 MiB" of a size class.
std::string sizeClassText(int sizeClass);

}  // namespace rankscope::compare
