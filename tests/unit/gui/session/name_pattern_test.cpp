// SPDX-License-Identifier: Apache-2.0
#include "gui/session/name_pattern.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

bool matches(const std::string& expression, std::string_view name, bool caseSensitive = false) {
    const NamePattern pattern(expression, caseSensitive);
    EXPECT_EQ(pattern.error(), "") << expression;
    return pattern.matches(name);
}

TEST(NamePattern, FindsAPartOfANameAndTheCaseOfLettersDoesNotMatter) {
    EXPECT_TRUE(matches("allreduce", "ncclDevKernel_AllReduce_Sum"));
    EXPECT_FALSE(matches("allreduce", "ncclDevKernel_AllReduce_Sum", true));
    EXPECT_TRUE(matches("^nccl.*(AllReduce|AllGather)", "ncclDevKernel_AllGather_RING"));
    EXPECT_FALSE(matches("^AllReduce", "ncclDevKernel_AllReduce_Sum"));
    EXPECT_TRUE(matches("", "anything"));
}

TEST(NamePattern, KnowsTheClassesThatPeopleType) {
    EXPECT_TRUE(matches("gemm_\\d+x\\d+", "sgemm_128x64"));
    EXPECT_FALSE(matches("gemm_\\D", "sgemm_128x64"));
    EXPECT_TRUE(matches("layer[\\d.]+end", "layer3.14end"));
    EXPECT_TRUE(matches("a[[:digit:]]b", "a7b"));
    EXPECT_TRUE(matches("void (?:at::)?native", "void at::native::copy"));
    EXPECT_TRUE(matches("a\\.b", "a.b"));
    EXPECT_FALSE(matches("a\\.b", "axb"));
    EXPECT_TRUE(matches("[]x]y", "]y"));
}

TEST(NamePattern, SaysWhatIsWrongAndMatchesNothingThen) {
    for (const std::string expression :
         {"(", "[a", "a{2", "(?=x)", "\\1", "(a)\\1", "a{1000000}", "((x{99}){99}){99}", "[[:nonsense:]]"}) {
        const NamePattern pattern(expression, false);
        EXPECT_NE(pattern.error(), "") << expression;
        EXPECT_FALSE(pattern.matches("(aaa*"));
    }
    EXPECT_NE(NamePattern(std::string("a\0b", 3), false).error(), "");
    EXPECT_NE(NamePattern(std::string(5000, 'a'), false).error(), "");
}

TEST(NamePattern, TrailingBackslashIsAnError) {
    EXPECT_NE(NamePattern("abc\\", false).error(), "");
}

TEST(NamePattern, LongAndStrangeNamesAreOnlyNames) {
    const std::string huge(100'000, 'x');
    EXPECT_TRUE(matches("(x+x+)+y?$", huge));  // looked at as far as NamePattern::kMaxName
    EXPECT_FALSE(matches("(x+x+)+y$", huge));
    EXPECT_TRUE(matches("b$", std::string_view("a\0b", 3)));
    matches("[^a]", "\xff\xfe broken UTF-8 \xe2\x80");
}

}  // namespace
}  // namespace rankscope::gui
