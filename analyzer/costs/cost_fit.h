// SPDX-License-Identifier: Apache-2.0
// Transfer time of a collective as alpha + beta x bytes, per communicator and operation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

struct CostFit {
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    double alphaNs = 0;
    double betaNsPerByte = 0;
    std::string source;  // fit | link peak as prior | best bandwidth reached as prior
    int samples = 0;
    int64_t smallestBytes = 0;
    int64_t largestBytes = 0;
    std::optional<double> ceiling;  // highest possible bus bandwidth, bytes per ns

    double timeNs(double bytes) const { return alphaNs + betaNsPerByte * bytes; }
    /// n* = alpha / beta: a message of this size spends half its time on start-up.
    double crossoverBytes() const { return betaNsPerByte > 0 ? alphaNs / betaNsPerByte : 0; }

    static constexpr double kSmallestRange = 4;  // sizes must differ by this factor for a line to mean something
};

/// Fits for every (communicator, op) with sizes and transfer times. Without the range of sizes and without a link peak
/// there is none.
std::vector<CostFit> fitCosts(const facts::TraceFacts& facts, const LinkPeaks& peaks);

}  // namespace rankscope::costs
