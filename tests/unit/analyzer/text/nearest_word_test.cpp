// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/nearest_word.h"

#include <gtest/gtest.h>

namespace rankscope::text {
namespace {

const std::vector<std::string> kVerbs = {"run", "analyze", "explain", "export", "view"};

TEST(NearestWord, LettersLeftOutPutInChangedOrExchangedAreForgiven) {
    EXPECT_EQ(nearestWord("analyse", kVerbs), "analyze");
    EXPECT_EQ(nearestWord("anlyze", kVerbs), "analyze");
    EXPECT_EQ(nearestWord("annalyze", kVerbs), "analyze");
    EXPECT_EQ(nearestWord("explian", kVerbs), "explain");
    EXPECT_EQ(nearestWord("rnu", kVerbs), "run");
}

TEST(NearestWord, MoreThanOneLetterInThreeIsAnotherWord) {
    EXPECT_EQ(nearestWord("exit", kVerbs), "");
    EXPECT_EQ(nearestWord("", kVerbs), "");
    EXPECT_EQ(nearestWord("analyze", {}), "");
}

TEST(NearestWord, AWordOfAnyLengthIsAnswered) {
    EXPECT_EQ(nearestWord(std::string(100'000, 'a'), kVerbs), "");
}

TEST(NearestWord, IsAskedForInAHint) {
    EXPECT_EQ(didYouMean("veiw", kVerbs), "did you mean view? ");
    EXPECT_EQ(didYouMean("nothing-like-it", kVerbs), "");
}

}  // namespace
}  // namespace rankscope::text
