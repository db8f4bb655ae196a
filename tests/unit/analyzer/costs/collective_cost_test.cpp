// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/collective_cost.h"

#include <gtest/gtest.h>

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {
namespace {

constexpr double kAlphaNs = 5'000, kRate = 100, kMebi = 1 << 20;
constexpr AlgorithmChoice kLl{store::Algorithm::ring, store::Protocol::ll};
constexpr AlgorithmChoice kSimple{store::Algorithm::ring, store::Protocol::simple};

/// Four ranks of one node: NCCL's base and 6 hops, of which LL takes 0.35 of Simple's time, and 1.5 bytes on the bus
/// for each byte. LL reaches 0.35 of the rate, which is inside of what NCCL's table allows.
double llNs(double bytes) {
    return 3 * kAlphaNs + 1.5 * bytes / (kRate * 0.35);
}

double simpleNs(double bytes) {
    return 8.5 * kAlphaNs + 1.5 * bytes / kRate;
}

facts::TraceFacts reductionsWithLl() {
    facts::TraceFacts facts;
    facts::Communicator& communicator = facts.communicators[1];
    communicator.id = 1;
    communicator.size = communicator.smallestNode = 4;
    for (const double mebibytes : {1, 4, 16, 64})
        for (int i = 0; i < 3; ++i) {
            store::Collective row;
            row.id = static_cast<int64_t>(facts.collectives.size()) + 1;
            row.communicatorId = 1;
            row.op = store::Op::allReduce;
            row.bytes = static_cast<int64_t>(mebibytes * kMebi);
            row.transferNs = static_cast<int64_t>(llNs(mebibytes * kMebi));
            row.complete = true;
            row.algorithm = kLl.algorithm;
            row.protocol = kLl.protocol;
            facts.collectives.push_back(row);
        }
    return facts;
}

Message reduction(double bytes) {
    Message message;
    message.shape = {1, 4};
    message.smallestNode = 4;
    message.op = store::Op::allReduce;
    message.bytes = bytes;
    message.present = kLl;
    message.presentNs = llNs(bytes);
    return message;
}

TEST(CollectiveCost, WithoutPeaksTheLinkIsTheLeastThatExplainsTheTimes) {
    const CollectiveCost cost(reductionsWithLl(), {});
    const auto link = cost.linkOf(reduction(64 * kMebi));
    ASSERT_TRUE(link);
    EXPECT_NEAR(link->bytesPerNs, 35 / 0.4, 0.5);  // LL reaches 0.4 of an NVLink at most
    EXPECT_NEAR(link->alphaNs, 15'000 / 3.6, 20);  // and starts 3.6 hops late at most
    const auto simple = cost.of(reduction(64 * kMebi), kSimple);
    ASSERT_TRUE(simple);
    EXPECT_GE(simple->scale.high * llNs(64 * kMebi), simpleNs(64 * kMebi)) << "no more is claimed than is gained";
    EXPECT_LT(simple->scale.high, 1);
}

TEST(CollectiveCost, APeakWithoutAStartUpGetsTheUsualOne) {
    const CollectiveCost cost(reductionsWithLl(), parseLinkPeaks("intra:gbps=100"));
    const auto link = cost.linkOf(reduction(kMebi));
    ASSERT_TRUE(link);
    EXPECT_EQ(link->bytesPerNs, 100);
    EXPECT_EQ(link->alphaNs, unknownAlphaNs(false));
}

TEST(CollectiveCost, WithoutPeaksAndSizesNothingIsKnownOfTheLink) {
    facts::TraceFacts facts = reductionsWithLl();
    facts.collectives.resize(3);
    EXPECT_FALSE(CollectiveCost(facts, {}).linkOf(reduction(kMebi)));
    EXPECT_FALSE(CollectiveCost().linkOf(reduction(kMebi)));
}

TEST(CollectiveCost, BetweenSizesThatRanATimeIsKnownAndFarBeyondThemNot) {
    const CollectiveCost cost(reductionsWithLl(), {});
    const CostCurve* curve = cost.evidence().find({EvidenceFrom::trace, {1, 4}, store::Op::allReduce, kLl});
    ASSERT_NE(curve, nullptr);
    EXPECT_EQ(curve->samples(), 12u);
    EXPECT_NEAR(curve->at(4 * kMebi)->expected, llNs(4 * kMebi), 1);
    for (const double mebibytes : {0.6, 3.0, 40.0, 120.0}) {
        const auto ns = curve->at(mebibytes * kMebi);
        ASSERT_TRUE(ns) << mebibytes;
        EXPECT_LE(ns->low, llNs(mebibytes * kMebi)) << mebibytes;
        EXPECT_GE(ns->high, llNs(mebibytes * kMebi)) << mebibytes;
        EXPECT_NEAR(ns->expected, llNs(mebibytes * kMebi), 0.01 * ns->expected) << mebibytes;
    }
    EXPECT_FALSE(curve->at(300 * kMebi));
}

}  // namespace
}  // namespace rankscope::costs
