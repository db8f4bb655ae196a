// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/bound.h"

#include <gtest/gtest.h>

namespace rankscope::report {
namespace {

Bound ofPath(std::map<std::string, double> ns) {
    ReplaySection replay;
    replay.criticalPathNs = std::move(ns);
    return boundOf(replay, {}, true);
}

BreakdownRow rowOf(int64_t compute, int64_t waiting, int64_t transfer, int64_t idle) {
    BreakdownRow row;
    row.total.computeNs = compute;
    row.total.exposedWaitNs = waiting;
    row.total.exposedTransferNs = transfer;
    row.total.idleNs = idle;
    row.total.stepNs = compute + waiting + transfer + idle;
    return row;
}

TEST(Bound, IsWhatMostOfTheCriticalPathIsIn) {
    const Bound bound = ofPath({{"compute", 80}, {"transfer", 15}, {"host", 3}, {"launch", 2}});
    EXPECT_EQ(bound.by, BoundBy::compute);
    EXPECT_DOUBLE_EQ(bound.host, 0.05);
    EXPECT_EQ(boundByText(bound),
              "compute-bound: 80.0 % of the critical path is compute, 15.0 % communication, 5.0 % the host");
    EXPECT_EQ(ofPath({{"compute", 20}, {"transfer", 75}}).by, BoundBy::communication);
    EXPECT_EQ(ofPath({{"compute", 20}, {"launch", 40}, {"host", 40}}).by, BoundBy::host);
    EXPECT_EQ(ofPath({{"compute", 20}, {"memory", 60}}).by, BoundBy::memory);
}

TEST(Bound, IsMixedWhereNoShareIsFarAheadOfTheNext) {
    EXPECT_EQ(ofPath({{"compute", 60}, {"transfer", 40}}).by, BoundBy::mixed);
    EXPECT_EQ(ofPath({{"compute", 67}, {"transfer", 33}}).by, BoundBy::compute);
    EXPECT_EQ(ofPath({{"compute", 49}, {"transfer", 21}, {"host", 20}, {"memory", 10}}).by, BoundBy::mixed)
        << "less than half is not most";
}

TEST(Bound, GapsOfTheDeviceHaveNoWord) {
    const Bound bound = ofPath({{"compute", 20}, {"gap", 80}});
    EXPECT_EQ(bound.by, BoundBy::unknown);
    EXPECT_TRUE(bound.isMeasured);
}

TEST(Bound, WithoutAPathAllRanksTimeCountsAndWaitingForNoWord) {
    const Bound bound = boundOf({}, {rowOf(80, 0, 20, 0), rowOf(40, 40, 20, 0)}, true);
    EXPECT_EQ(bound.by, BoundBy::compute);
    EXPECT_EQ(
        boundByText(bound),
        "compute-bound: 60.0 % of the ranks' time is compute, 20.0 % communication, 20.0 % waiting and other idle "
        "time");
    BreakdownRow idle = rowOf(20, 0, 0, 80);
    idle.idleByCauseNs = {{"late_launch", 50}, {"input", 20}, {"dependency", 10}};
    EXPECT_EQ(boundOf({}, {idle}, true).by, BoundBy::host);
    idle.idleByCauseNs = {{"dependency", 80}};
    EXPECT_EQ(boundOf({}, {idle}, true).by, BoundBy::unknown);
}

TEST(Bound, IsUnknownWhereNothingOrNoKernelsWereRecorded) {
    EXPECT_EQ(boundOf({}, {}, true).by, BoundBy::unknown);
    EXPECT_EQ(boundByText(boundOf({}, {}, true)), "");
    EXPECT_FALSE(boundOf({}, {rowOf(80, 0, 20, 0)}, false).isMeasured);
}

TEST(Bound, TheLineNamesTheRanksOfThePath) {
    Report report;
    report.replay.criticalPathNs = {{"compute", 90}, {"transfer", 10}};
    report.replay.criticalRanksNs = {{3, 100}};
    report.bound = boundOf(report.replay, {}, true);
    EXPECT_EQ(boundLine(report), "compute-bound; critical path: 90.0 % compute, 10.0 % transfer; all of it on rank 3");
}

}  // namespace
}  // namespace rankscope::report
