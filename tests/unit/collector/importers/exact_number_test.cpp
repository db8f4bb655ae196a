// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/exact_number.h"

#include <gtest/gtest.h>

#include <limits>

namespace rankscope::collector {
namespace {

TEST(ExactNumber, KeepsNanosecondsThatADoubleWouldLose) {
    EXPECT_EQ(nanosecondsFromMicroseconds("1712195495502094.565"), 1712195495502094565);
    EXPECT_NE(static_cast<int64_t>(1712195495502094.565 * 1000), 1712195495502094565);
}

TEST(ExactNumber, ReadsIntegerAndFractionalMicroseconds) {
    EXPECT_EQ(nanosecondsFromMicroseconds("1694128201436271"), 1694128201436271000);
    EXPECT_EQ(nanosecondsFromMicroseconds("0"), 0);
    EXPECT_EQ(nanosecondsFromMicroseconds("0.001"), 1);
    EXPECT_EQ(nanosecondsFromMicroseconds("607904.0"), 607904000);
    EXPECT_EQ(nanosecondsFromMicroseconds("12.5"), 12500);
    EXPECT_EQ(nanosecondsFromMicroseconds("-3.25"), -3250);
}

TEST(ExactNumber, RoundsBelowTheNanosecondHalfAwayFromZero) {
    EXPECT_EQ(nanosecondsFromMicroseconds("1.0004"), 1000);
    EXPECT_EQ(nanosecondsFromMicroseconds("1.0005"), 1001);
    EXPECT_EQ(nanosecondsFromMicroseconds("-1.0005"), -1001);
    EXPECT_EQ(nanosecondsFromMicroseconds("848671.6747283936"), 848671675);
}

TEST(ExactNumber, ReadsExponents) {
    EXPECT_EQ(nanosecondsFromMicroseconds("1.5e3"), 1500000);
    EXPECT_EQ(nanosecondsFromMicroseconds("1712195495502094565E-3"), 1712195495502094565);
    EXPECT_EQ(nanosecondsFromMicroseconds("1e-99999"), 0);
}

TEST(ExactNumber, RefusesWhatIsNoNumberOrDoesNotFit) {
    for (const char* text : {"", "-", ".", "abc", "1.2.3", "1e", "12x", "null", "9300000000000000", "1e30",
                             "99999999999999999999999999999999999999999"}) {
        EXPECT_EQ(nanosecondsFromMicroseconds(text), std::nullopt) << text;
    }
}

TEST(ExactNumber, IntegersAboveInt64KeepTheirBits) {
    EXPECT_EQ(integerFromText("10159970886766084423"), static_cast<int64_t>(10159970886766084423u));
    EXPECT_EQ(integerFromText("18446744073709551615"), -1);
    EXPECT_EQ(integerFromText("9223372036854775807"), std::numeric_limits<int64_t>::max());
    EXPECT_EQ(integerFromText("18446744073709551616"), std::nullopt);
}

TEST(ExactNumber, IntegersMayCarryAZeroFraction) {
    EXPECT_EQ(integerFromText("7.0"), 7);
    EXPECT_EQ(integerFromText("-2"), -2);
    EXPECT_EQ(integerFromText("0.0"), 0);
    EXPECT_EQ(integerFromText("7.5"), std::nullopt);
}

}  // namespace
}  // namespace rankscope::collector
