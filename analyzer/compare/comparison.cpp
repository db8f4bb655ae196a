// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

std::string_view toText(StepVerdict verdict) {
    constexpr std::string_view kNames[] = {"regression", "improvement", "no change", "not enough samples",
                                           "incomparable"};
    return kNames[static_cast<size_t>(verdict)];
}

std::string_view toText(FindingStatus status) {
    constexpr std::string_view kNames[] = {"new", "gone", "worse", "better", "same", "present"};
    return kNames[static_cast<size_t>(status)];
}

std::string_view toText(StepPart part) {
    constexpr std::string_view kNames[] = {"compute", "transfer", "memory", "host", "launch",
                                           "gap",     "wait",     "idle",   "rest"};
    return kNames[static_cast<size_t>(part)];
}

}  // namespace rankscope::compare
