// SPDX-License-Identifier: Apache-2.0
// Words about a run that every format says alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

std::string countedText(int64_t number, std::string_view noun);  // "1 step", "3 steps"

/// An error bound: "12 us"; "under 1 us" for less, since clocks are not read more exactly than that.
std::string boundText(int64_t ns);

/// Where the steps' boundaries come from: "steps are the ranges ProfilerStep", "steps by the period of the
/// collectives".
std::string stepSourceText(const std::string& source);

/// The window that a finding names: "best seen in step 2, 62.2 ms to 90.4 ms into the recording; 12 analysed steps show
/// it".
std::string bestSeenText(const Report& report, const job::Finding& finding);

}  // namespace rankscope::report
