// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct TensorParallelThresholds {
    // Start-up per hop inside a node where none is known: PCIe in NCCL's table (5.7 us, src/graph/tuning.cc of 2.28) with its part of what a collective costs beside its hops.
    static constexpr double kUnknownAlphaNs = 8'000;
};

void detectTensorParallelSpan(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
