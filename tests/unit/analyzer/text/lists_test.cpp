// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/lists.h"

#include <gtest/gtest.h>

#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::text {
namespace {

TEST(Lists, ANounIsInTheNumberThatWasCounted) {
    EXPECT_EQ(countedText(1, "rank"), "1 rank");
    EXPECT_EQ(countedText(size_t{0}, "rank"), "0 ranks");
}

TEST(Lists, SeparatorsStandBetweenTextsOnly) {
    EXPECT_EQ(joined(std::vector<std::string>{}), "");
    EXPECT_EQ(joined(std::vector<std::string>{"a", "", "b"}, "; "), "a; ; b");
}

TEST(Lists, WhatIsNotThereIsNothing) {
    EXPECT_EQ(valueAt(std::map<std::string, double>{{"a", 2}}, "b"), 0);
    EXPECT_EQ(mostCommon(std::map<std::string, int>{}), "");
    EXPECT_EQ(mostCommon(std::map<std::string, int>{{"a", 1}, {"b", 2}, {"c", 2}}), "b");
    EXPECT_EQ(first(std::vector<int>{1}, 3).size(), 1u);
}

TEST(Units, NumbersInARowAreARange) {
    EXPECT_EQ(rangesText({5, 0, 2, 1}), "0-2, 5");
    EXPECT_EQ(ranksText({}), "ranks none");
    EXPECT_EQ(ranksText({0, 2, 4, 6, 8, 10, 12, 14}), "ranks 0, 2, 4, 6, 8, 10, 12, 14");
    EXPECT_EQ(ranksText({16, 2, 4, 6, 8, 10, 12, 14, 0}), "ranks 0, 2, ..., 16 (9 ranks)");
    EXPECT_EQ(ranksText({0, 2, 4, 6, 8, 10, 12, 14, 17}), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 17");
    EXPECT_EQ(ranksText({0, 1, 2, 3, 4, 5, 6, 7, 8}), "ranks 0-8");
    EXPECT_EQ(durationText(-0.0), "0 ns");
    EXPECT_EQ(sizeClassText(sizeClassOf(20 << 20)), "16 MiB to 64 MiB");
    EXPECT_EQ(sizeClassText(sizeClassOf(0)), "unknown size");
}

TEST(Painter, ShadesOnlyWhereColourIsTaken) {
    EXPECT_EQ(Painter(false).bold("x"), "x");
    EXPECT_EQ(Painter(true)(Shade::boldRed, "x"), "\x1b[1;31mx\x1b[0m");
    EXPECT_EQ(Painter(true)(Shade::plain, "x"), "x");
}

}  // namespace
}  // namespace rankscope::text
