// SPDX-License-Identifier: Apache-2.0
// Advice in the languages it is used in. Fragments hold what is recommended; what is only worth a trial stands in them
// as comments, where the language has comments.
#pragma once

#include <string>

#include "analyzer/recommend/recommendation.h"

namespace rankscope::recommend {

std::string renderAdviceText(const Advice& advice, bool colour);
/// Schema rankscope.recommend/1.
std::string renderAdviceJson(const Advice& advice);
/// Is for `.` in a shell: export and unset lines.
std::string renderAdviceEnvironment(const Advice& advice);
/// Is for NCCL tuner plugins: NVIDIA's CSV of their sample, and `rankscope run --tuner`.
std::string renderAdviceTunerCsv(const Advice& advice);
/// Writes a fragment of a DeepSpeed configuration; JSON has no comments, so that trials are left out.
std::string renderAdviceDeepSpeed(const Advice& advice);
/// Writes a fragment of an Accelerate configuration, YAML.
std::string renderAdviceAccelerate(const Advice& advice);

}  // namespace rankscope::recommend
