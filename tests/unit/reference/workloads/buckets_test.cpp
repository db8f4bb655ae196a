// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/buckets.h"

#include <gtest/gtest.h>

namespace rankscope::reference {
namespace {

void expectRanges(const std::vector<Bucket>& buckets, const std::vector<std::pair<int64_t, int64_t>>& expected) {
    ASSERT_EQ(buckets.size(), expected.size());
    for (size_t i = 0; i < buckets.size(); ++i) {
        EXPECT_EQ(buckets[i].begin, expected[i].first) << "bucket " << i;
        EXPECT_EQ(buckets[i].end, expected[i].second) << "bucket " << i;
    }
}

TEST(Buckets, CloseOnceTheyReachTheirLimitAndTheFirstLimitIsSmall) {
    const int64_t mib = 1 << 20;
    // Two bytes an element: the first bucket closes at 1 MiB (2 tensors of 0.5 MiB), the others at 4 MiB.
    expectRanges(planBuckets({mib / 4, mib / 4, mib, mib, mib / 2, mib}, 2, 4 * mib),
                 {{0, mib / 2}, {mib / 2, 5 * mib / 2}, {5 * mib / 2, 4 * mib}});
}

TEST(Buckets, TensorsAreNeverSplit) {
    const int64_t mib = 1 << 20;
    expectRanges(planBuckets({100 * mib, mib}, 2, 25 * mib), {{0, 100 * mib}, {100 * mib, 101 * mib}});
}

TEST(Buckets, ALimitBelowTheFirstOneHoldsForTheFirstToo) {
    expectRanges(planBuckets({10, 10, 10}, 4, 40), {{0, 10}, {10, 20}, {20, 30}});
}

TEST(Buckets, SingleBucketHoldsEverything) {
    expectRanges(planSingleBucket({3, 4, 5}), {{0, 12}});
}

TEST(Buckets, EqualBucketsHaveExactlyTheSizeAskedForButTheLast) {
    expectRanges(planEqualBuckets({1000, 1000, 100}, 2, 2048), {{0, 1024}, {1024, 2048}, {2048, 2100}});
}

}  // namespace
}  // namespace rankscope::reference
