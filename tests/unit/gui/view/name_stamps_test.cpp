// SPDX-License-Identifier: Apache-2.0
#include "gui/view/name_stamps.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

size_t dotsUpTo(const NameStamp& stamp, int width) {
    size_t dots = 0;
    for (int y = 0; y < stamp.height(); ++y)
        for (const NameStamp::Dot& dot : stamp.row(y)) dots += dot.x < width;
    return dots;
}

TEST(NameStamps, AWholeNameIsShownWhereItFits) {
    const NameStamp stamp("ncclDevKernel_AllReduce", 1), ellipsis("\u2026", 1);
    EXPECT_GT(stamp.width(), 60);
    EXPECT_EQ(stamp.fitting(stamp.width(), ellipsis), stamp.width());
    EXPECT_EQ(stamp.fitting(10'000, ellipsis), stamp.width());
    EXPECT_GT(dotsUpTo(stamp, stamp.width()), 100u);
}

TEST(NameStamps, ACutNameLeavesRoomForItsEllipsis) {
    const NameStamp stamp("ncclDevKernel_AllReduce", 1), ellipsis("\u2026", 1);
    int last = 0;
    for (int width = 0; width < stamp.width(); ++width) {
        const int shown = stamp.fitting(width, ellipsis);
        EXPECT_TRUE(shown == 0 || shown + ellipsis.width() <= width) << width;
        EXPECT_GE(shown, last) << width;
        last = shown;
    }
    EXPECT_GT(last, stamp.width() / 2);
    EXPECT_EQ(stamp.fitting(8, ellipsis), 0);
}

TEST(NameStamps, InkGrowsWithTheRatio) {
    const NameStamp one("softmax", 1), two("softmax", 2);
    EXPECT_NEAR(two.width(), 2 * one.width(), 8);
    EXPECT_NEAR(two.height(), 2 * one.height(), 2);
}

TEST(NameStamps, NamesOfAnyKindAreStamped) {
    for (const QString& name : {QString(), QString(" "), QString("\u05e9\u05dc\u05d5\u05dd mixed"),
                                QString("a\u0301\u0302\u0303"), QString(20'000, 'w'), QString(QChar(0xd800))}) {
        const NameStamp stamp(name, 1);
        EXPECT_LE(stamp.width(), 4'000);
        EXPECT_LE(stamp.fitting(200, NameStamp("\u2026", 1)), 200);
    }
}

TEST(NameStamps, StampsAreKeptUntilTheRatioChanges) {
    NameStamps stamps;
    stamps.prepare(1);
    EXPECT_EQ(stamps.find(3), nullptr);
    stamps.add(3, "gemm");
    stamps.prepare(1);
    EXPECT_NE(stamps.find(3), nullptr);
    stamps.prepare(2);
    EXPECT_EQ(stamps.find(3), nullptr);
}

}  // namespace
}  // namespace rankscope::gui
