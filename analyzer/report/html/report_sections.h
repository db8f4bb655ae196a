// SPDX-License-Identifier: Apache-2.0
// Sections of a run's page, as markup; empty where the run has nothing for them.
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report::html {

/// Writes one finding with its evidence, its fix to copy, and what the catalogue says of its kind.
std::string findingCard(const Report& report, const job::Finding& finding);

/// Shows where each rank's step goes, as a bar and in numbers.
std::string breakdownSection(const Report& report);

std::string memorySection(const Report& report);     // how much of its device each rank came to hold
std::string stepSection(const Report& report);       // the length of each step
std::string bandwidthSection(const Report& report);  // bus bandwidth by message size
std::string efficienciesSection(const Report& report);
std::string criticalPathSection(const Report& report);
std::string idleSection(const Report& report);  // idle time by cause
std::string collectivesSection(const Report& report);

}  // namespace rankscope::report::html
