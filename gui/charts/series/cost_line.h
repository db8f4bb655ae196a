// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace rankscope::gui {

struct SizedTime {
    double bytes = 0;
    double timeNs = 0;
};

/// Time of a message as alpha + beta x bytes (Hockney's model).
struct CostLine {
    double alphaNs = 0;
    double betaNsPerByte = 0;

    double timeNs(double bytes) const { return alphaNs + betaNsPerByte * bytes; }
};

/// Least squares of the relative error through the median time of each size, both coefficients at least 0; sizes within
/// 10 % count as one. Nothing where the sizes differ by less than a factor of 4: start-up and bandwidth cannot be told
/// apart there.
std::optional<CostLine> fitCostLine(std::vector<SizedTime> samples);

/// Where the sizes are too alike for a fit: the median of what each message took beyond `betaNsPerByte` x its bytes as
/// start-up, at least 0.
std::optional<CostLine> startUpBeyond(double betaNsPerByte, const std::vector<SizedTime>& samples);

}  // namespace rankscope::gui
