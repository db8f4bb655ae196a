// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

std::string_view toText(StepVerdict verdict) {
    switch (verdict) {
        case StepVerdict::regression:
            return "regression";
        case StepVerdict::improvement:
            return "improvement";
        case StepVerdict::noChange:
            return "no change";
        case StepVerdict::notEnoughSamples:
            return "not enough samples";
        case StepVerdict::incomparable:
            break;
    }
    return "incomparable";
}

std::string_view toText(FindingStatus status) {
    switch (status) {
        case FindingStatus::isNew:
            return "new";
        case FindingStatus::gone:
            return "gone";
        case FindingStatus::worse:
            return "worse";
        case FindingStatus::better:
            return "better";
        case FindingStatus::present:
            return "present";
        case FindingStatus::same:
            break;
    }
    return "same";
}

std::string_view toText(StepPart part) {
    constexpr std::string_view kNames[] = {"compute", "transfer", "memory", "host", "launch",
                                           "gap",     "wait",     "idle",   "rest"};
    return kNames[static_cast<size_t>(part)];
}

}  // namespace rankscope::compare
