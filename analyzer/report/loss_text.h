// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Puts first what the reader should see first: the rank a death began with, then errors, warnings and the rest, each
/// in its order.
void orderLosses(std::vector<LossRow>& losses);

/// A loss in one line, its rank named once; without its severity.
std::string lossText(const LossRow& loss);

/// What a reader is told of one kind of loss: "ranks 0-2, 4: records did not fit (12 x)".
struct LossLine {
    std::string severity;
    std::string text;
};

/// One line for what happened alike on several ranks, in the order of the rows. Where their texts differ by numbers
/// alone, the first rank's stands for all and is said to.
std::vector<LossLine> lossLines(const std::vector<LossRow>& losses);

}  // namespace rankscope::report
