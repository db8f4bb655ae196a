// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// How well the replay, from which savings are told, reproduces the measured step; or why there is none. One line
/// without a full stop.
std::string replayText(const ReplaySection& replay);

/// What the critical path through all ranks consists of, and on which ranks it lies. One line without a full stop;
/// empty without a replay.
std::string criticalPathText(const ReplaySection& replay);

/// What repairing everything found gains, of `found` certain findings. One sentence.
std::string ceilingText(const CeilingSection& ceiling, size_t found);

}  // namespace rankscope::report
