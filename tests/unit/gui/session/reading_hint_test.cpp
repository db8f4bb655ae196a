// SPDX-License-Identifier: Apache-2.0
#include "gui/session/reading_hint.h"

#include <gtest/gtest.h>

#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::gui {
namespace {

TEST(ReadingHint, EveryDiagnosisOfTheCatalogueHasOneOfItsOwn) {
    std::set<std::string> hints;
    for (const diagnose::Diagnosis* entry : diagnose::catalogue()) {
        const std::string hint = readingHint(entry->id);
        EXPECT_FALSE(hint.empty()) << entry->id;
        EXPECT_TRUE(hints.insert(hint).second) << entry->id;
    }
    EXPECT_GE(hints.size(), 20u);
    EXPECT_EQ(readingHint("RS999"), "");
}

}  // namespace
}  // namespace rankscope::gui
