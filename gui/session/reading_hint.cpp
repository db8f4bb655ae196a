// SPDX-License-Identifier: Apache-2.0
#include "gui/session/reading_hint.h"

#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::gui {

std::string readingHint(std::string_view id) {
    const diagnose::Diagnosis* diagnosis = diagnose::findDiagnosis(id);
    return diagnosis != nullptr ? diagnosis->hint : "";
}

std::string explanationOf(std::string_view id) {
    const diagnose::Diagnosis* diagnosis = diagnose::findDiagnosis(id);
    return diagnosis != nullptr ? diagnose::renderDiagnosis(*diagnosis, 90) : "";
}

}  // namespace rankscope::gui
