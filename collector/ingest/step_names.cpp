// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_names.h"

#include <cctype>
#include <string>

namespace rankscope::collector {

StepName stepNameOf(std::string_view pattern) {
    if (pattern == "ProfilerStep") return StepName::profilerStep;
    std::string lower;
    for (const char c : pattern) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto has = [&lower](const char* word) { return lower.find(word) != std::string::npos; };
    if (has("optimizer") || has("scheduler")) return StepName::other;
    return has("step") || has("iter") ? StepName::saysStep : StepName::other;
}

}  // namespace rankscope::collector
