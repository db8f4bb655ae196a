// SPDX-License-Identifier: Apache-2.0
// The catalogue's pieces: what entries share, and the entries of one family per file.
#pragma once

#include <vector>

#include "analyzer/diagnose/catalogue.h"

namespace rankscope::diagnose {

ThresholdEntry floorEntry();
ThresholdEntry fewestStepsEntry();

std::vector<CatalogueEntry> pipelineEntries();   // RS1xx
std::vector<CatalogueEntry> imbalanceEntries();  // RS302 to RS304
std::vector<CatalogueEntry> hostEntries();       // RS4xx

}  // namespace rankscope::diagnose
