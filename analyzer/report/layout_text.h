// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// How the job was split: "dp4 tp2 pp1, ZeRO-1"; "unknown" when nothing speaks for any degree.
std::string layoutText(const LayoutSection& layout);

}  // namespace rankscope::report
