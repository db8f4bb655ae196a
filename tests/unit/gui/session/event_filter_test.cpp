// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_filter.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

DurationBounds bounds(std::string_view text) {
    const auto parsed = parseDuration(text);
    EXPECT_EQ(parsed.error, "") << text;
    return parsed.value;
}

TEST(DurationFilter, ReadsRelationsUnitsAndRanges) {
    EXPECT_EQ(bounds(""), DurationBounds{});
    EXPECT_EQ(bounds("  "), DurationBounds{});
    EXPECT_EQ(bounds("> 1 ms"), (DurationBounds{1'000'001, INT64_MAX}));
    EXPECT_EQ(bounds(">=1ms"), (DurationBounds{1'000'000, INT64_MAX}));
    EXPECT_EQ(bounds("1.5 us"), (DurationBounds{1'500, INT64_MAX}));
    EXPECT_EQ(bounds("< 2 s"), (DurationBounds{0, 1'999'999'999}));
    EXPECT_EQ(bounds("<= 20 ns"), (DurationBounds{0, 20}));
    EXPECT_EQ(bounds("> 3 \u00b5s"), (DurationBounds{3'001, INT64_MAX}));
    EXPECT_EQ(bounds("> 3 \u03bcs"), (DurationBounds{3'001, INT64_MAX}));
    EXPECT_EQ(bounds("1 ms .. 2 ms"), (DurationBounds{1'000'000, 2'000'000}));
    EXPECT_EQ(bounds("1-2 ms"), (DurationBounds{1'000'000, 2'000'000}));
    EXPECT_EQ(bounds("500us-2ms"), (DurationBounds{500'000, 2'000'000}));
    EXPECT_EQ(bounds("> 0"), (DurationBounds{1, INT64_MAX}));
    EXPECT_EQ(bounds("> 1 min"), (DurationBounds{60'000'000'001, INT64_MAX}));
    EXPECT_EQ(bounds("< 1e30 s"), (DurationBounds{0, INT64_MAX - 1}));
}

TEST(DurationFilter, SaysWhatItDoesNotUnderstand) {
    for (const char* text :
         {"> 5", "ms", "> ", "> 1 parsec", "-3 ms", "1 ms ms", "nan ms", "inf s", "..", "1 ms ..", "> 1 ms < 2 ms"})
        EXPECT_NE(parseDuration(text).error, "") << text;
}

using Ranks = std::vector<RankInterval>;

TEST(RankFilter, ReadsRanksAndIntervals) {
    EXPECT_EQ(parseRanks("").value, Ranks{});
    EXPECT_EQ(parseRanks("3").value, (Ranks{{3, 3}}));
    EXPECT_EQ(parseRanks(" 0-7, 12 ").value, (Ranks{{0, 7}, {12, 12}}));
    EXPECT_EQ(parseRanks("0..7 9").value, (Ranks{{0, 7}, {9, 9}}));
    for (const char* text : {"x", "3-", "1,,2", "-4", "99999999999"}) EXPECT_NE(parseRanks(text).error, "") << text;
}

}  // namespace
}  // namespace rankscope::gui
