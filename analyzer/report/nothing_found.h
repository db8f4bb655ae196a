// SPDX-License-Identifier: Apache-2.0
// What a report says that claims nothing: health is only claimed of what was recorded and could be judged.
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Nothing found, nothing left open and nothing missing from the recording.
bool isClean(const Report& report);

/// The sentence in place of the findings; for reports without a certain one.
std::string nothingFoundText(const Report& report);

}  // namespace rankscope::report
