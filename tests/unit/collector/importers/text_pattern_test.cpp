// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/text_pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rankscope::collector {
namespace {

using Taken = std::map<std::string, std::string>;

std::optional<Taken> match(const char* pattern, const char* text) {
    return TextPattern(pattern).match(text);
}

TEST(TextPattern, GapsTakeWhatStandsInTheirPlace) {
    EXPECT_EQ(match("PP rank {pp}, TP rank {tp}, {lane}", "PP rank 3, TP rank 0, dp-comm"),
              (Taken{{"pp", "3"}, {"tp", "0"}, {"lane", "dp-comm"}}));
    EXPECT_EQ(match("pp_rank_{pp}.json", "pp_rank_12.json"), (Taken{{"pp", "12"}}));
    EXPECT_EQ(match("{all}", "a, b"), (Taken{{"all", "a, b"}}));
    EXPECT_EQ(match("{all}", ""), (Taken{{"all", ""}}));
    EXPECT_EQ(match("{a}.{b}", "x.y.z"), (Taken{{"a", "x"}, {"b", "y.z"}}));
    EXPECT_EQ(TextPattern("{a}, *.{b}x").gaps(), (std::vector<std::string>{"a", "b"}));
}

TEST(TextPattern, TheWholeTextMustFit) {
    EXPECT_EQ(match("send", "send"), Taken{});
    EXPECT_EQ(match("*-send", "forward-send"), Taken{});
    EXPECT_EQ(match("*", "anything"), Taken{});
    EXPECT_FALSE(match("send", "sends"));
    EXPECT_FALSE(match("send", "forward-send"));
    EXPECT_FALSE(match("*-send", "forward-send-2"));
    EXPECT_FALSE(match("pp_rank_{pp}.json", "pp_rank_1.json.gz"));
    EXPECT_FALSE(match("a*a", "a")) << "one letter is not both ends";
}

TEST(TextPattern, WhatNobodyCouldReadIsRefused) {
    for (const char* pattern : {"{a}{b}", "*{a}", "{a", "a}", "{}", "}{"})
        EXPECT_THROW(TextPattern{pattern}, std::invalid_argument) << pattern;
}

}  // namespace
}  // namespace rankscope::collector
