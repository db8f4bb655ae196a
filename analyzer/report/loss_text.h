// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::analyzer {

/// Puts first what the reader should see first: the rank a death began with, then errors, warnings and the rest, each in its order.
void orderLosses(std::vector<LossRow>& losses);

/// A loss in one line, its rank named once; without its severity.
std::string lossText(const LossRow& loss);

}  // namespace rankscope::analyzer
