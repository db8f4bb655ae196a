// SPDX-License-Identifier: Apache-2.0
// Fits the transfer time of messages as alpha + beta x bytes (Hockney, Parallel Computing 20(3), 1994).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

struct CostLine {
    double alphaNs = 0;
    double betaNsPerByte = 0;
    std::string source;  // fit | link peak as prior | best bandwidth reached as prior

    double timeNs(double bytes) const { return alphaNs + betaNsPerByte * bytes; }
    /// Returns n* = alpha / beta: a message of this size spends half its time on latency.
    double crossoverBytes() const { return betaNsPerByte > 0 ? alphaNs / betaNsPerByte : 0; }

    static constexpr double kSmallestRange = 4;  // sizes must differ by this factor for a line to mean something
    /// A line, or NCCL's formulas, which know neither chunks nor channels nor what else is on the links, are off by
    /// this share of a time: of the 154 sizes of five operations that SuperBench's nccl-tests tables of eight A100 hold
    /// (4 B to 8 GiB), 93 % lie within 5 % of lines through them; 95 % within 5.7 %.
    static constexpr double kError = 0.05;
};

/// Holds the line of a communicator's operation.
struct CostFit : CostLine {
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    std::optional<double> ceiling;  // highest possible bus bandwidth, bytes per ns
};

/// Holds times (ns) by the size of the message (bytes).
using TimesBySize = std::map<double, std::vector<double>>;

double totalNs(const TimesBySize& times);

/// Fits a line by Theil-Sen through the median time of each size; sizes within 10 % count as one. Where they differ by
/// less than CostLine::kSmallestRange they do not tell latency from bandwidth: then the rate is taken to be `ceiling`
/// (bus bandwidth of `op` over `ranks`, bytes per ns; `atLeast`: only the best that was reached), and there is no line
/// without it. Neither parameter is negative.
std::optional<CostLine> lineThrough(const TimesBySize& times, store::Op op, int ranks,
                                    const std::optional<double>& ceiling = {}, bool atLeast = false);

/// Fits a line for every (communicator, op) with sizes and transfer times, through the choice of algorithm and protocol
/// that takes most of its time.
std::vector<CostFit> fitCosts(const facts::TraceFacts& facts, const LinkPeaks& peaks);

}  // namespace rankscope::costs
