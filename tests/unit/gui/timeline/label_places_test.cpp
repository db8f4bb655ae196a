// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/label_places.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rankscope::gui {
namespace {

constexpr int kLeast = 13;

// Lines of `height` pixels, named by their number.
std::vector<Row> lines(int count, int height) {
    std::vector<Row> rows;
    for (int i = 0; i < count; ++i) {
        Row row;
        row.kind = RowKind::summary;
        row.rank = i;
        row.top = i * height;
        row.height = height;
        rows.push_back(row);
    }
    return rows;
}

std::vector<LabelPlace> placed(const std::vector<Row>& rows, RowsInSight sight, std::vector<int> toFix = {}) {
    return placeLabels(rows, sight, kLeast,
                       [&](const Row& row) { return std::ranges::find(toFix, row.rank) != toFix.end(); });
}

std::vector<int> ranks(const std::vector<LabelPlace>& labels) {
    std::vector<int> ranks;
    for (const LabelPlace& label : labels) ranks.push_back(label.row->rank);
    return ranks;
}

using Ranks = std::vector<int>;

TEST(LabelPlaces, LinesAsHighAsATextAreAllNamed) {
    EXPECT_EQ(ranks(placed(lines(4, 24), {0, 0, 60})), (Ranks{0, 1, 2}));
    EXPECT_EQ(ranks(placed(lines(4, 24), {-13, 0, 60})), (Ranks{1, 2, 3})) << "half of the first is out of sight";
}

TEST(LabelPlaces, OfLowLinesNoLabelCoversAnotherAndAllAreInSight) {
    const std::vector<Row> rows = lines(100, 2);
    const RowsInSight sight{-31, 40, 140};
    const std::vector<LabelPlace> labels = placed(rows, sight);
    ASSERT_GE(labels.size(), 7u);  // of 100 pixels by 13
    EXPECT_EQ(labels.front().top, sight.top) << "the first line has the first label";
    EXPECT_LE(labels.back().top + kLeast, sight.bottom);
    for (size_t i = 1; i < labels.size(); ++i) EXPECT_GE(labels[i].top, labels[i - 1].top + kLeast);
}

TEST(LabelPlaces, ARankToFixIsNamedAndItsNeighboursMakeRoom) {
    const std::vector<Row> rows = lines(100, 2);
    EXPECT_EQ(ranks(placed(rows, {0, 0, 60})), (Ranks{0, 9, 16, 23}));
    EXPECT_EQ(ranks(placed(rows, {0, 0, 60}, {5})), (Ranks{5, 12, 19, 26}));
}

TEST(LabelPlaces, OfNeighboursThatAreAllToFixThoseThatHaveRoomAreNamed) {
    EXPECT_EQ(ranks(placed(lines(100, 2), {0, 0, 60}, {10, 11, 12, 13, 14, 15, 16, 17})), (Ranks{0, 10, 17, 24}));
}

// Low lines, of which those from 40 on stand behind the lanes of one that is opened.
std::vector<Row> linesAroundLanes(int lowBetween) {
    std::vector<Row> rows = lines(40, 2);
    const auto add = [&](int height) {
        Row row;
        row.kind = RowKind::summary;
        row.rank = static_cast<int>(rows.size());
        row.top = rows.back().top + rows.back().height;
        row.height = height;
        rows.push_back(row);
    };
    add(24);
    for (int i = 0; i < lowBetween; ++i) add(2);
    add(24);
    for (int i = 0; i < 40; ++i) add(2);
    return rows;
}

TEST(LabelPlaces, BetweenHighLinesNoLabelCoversAnother) {
    for (const int lowBetween : {1, 6, 7, 20}) {
        SCOPED_TRACE(lowBetween);
        const std::vector<Row> rows = linesAroundLanes(lowBetween);
        const int firstHigh = 40, secondHigh = 41 + lowBetween;
        for (const std::vector<int>& toFix : {Ranks{}, Ranks{39, 41, secondHigh + 1}}) {
            const std::vector<LabelPlace> labels = placed(rows, {0, 0, 240}, toFix);
            for (size_t i = 1; i < labels.size(); ++i)
                EXPECT_GE(labels[i].top, labels[i - 1].top + std::max(kLeast, labels[i - 1].row->height))
                    << labels[i - 1].row->rank << " and " << labels[i].row->rank;
            const std::vector<int> named = ranks(labels);
            const auto isNamed = [&](int rank) { return std::ranges::find(named, rank) != named.end(); };
            EXPECT_TRUE(isNamed(firstHigh) && isNamed(secondHigh));
            for (const int rank : toFix) EXPECT_EQ(isNamed(rank), rank != 41 || lowBetween >= 7) << rank;
        }
    }
}

}  // namespace
}  // namespace rankscope::gui
