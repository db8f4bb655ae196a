// SPDX-License-Identifier: Apache-2.0
// What a link's slowness means: at its ceiling, slow, or nobody can tell.
#include "analyzer/job/link_probes.h"

#include <gtest/gtest.h>

#include "analyzer/job/collective_speed.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::job {
namespace {

using store::Op;

LinkProbe ethernet(double slowness) {
    LinkProbe probe{.slowness = slowness, .share = {0.58, 0.95}, .lateness = 1.6};
    probe.compareWithOthers();
    return probe;
}

TEST(LinkProbe, ACeilingHoldsWithoutWhatTheFormulasMayBeOffBy) {
    EXPECT_TRUE(ethernet(1 / 0.46).atCeiling());  // 1.3 times the time at 0.58 of the peak
    for (const double share : {0.44, 0.35, 0.28, 0.25}) {
        EXPECT_FALSE(ethernet(1 / share).atCeiling()) << share;
        EXPECT_FALSE(ethernet(1 / share).slow()) << share;
    }
    EXPECT_TRUE(ethernet(1 / 0.24).slow());
}

TEST(LinkProbe, AFasterSiblingIsTheMeasure) {
    LinkProbe probe = ethernet(1.6);
    probe.compareWithSiblings(1, 1.6);
    EXPECT_TRUE(probe.slow());
    probe.compareWithSiblings(1.5, 1.6);
    EXPECT_TRUE(probe.atCeiling());
    probe.compareWithSiblings(100, 100);  // all slow alike: no slower than healthy ones elsewhere
    EXPECT_EQ(probe.slowFrom(), ethernet(1).slowFrom());
    EXPECT_EQ(probe.ceilingTo(), ethernet(1).ceilingTo());
}

/// The device holds LL to a part of the rate: twice as long is no slow link yet, whose own share LL's format would be.
TEST(LinkProbe, WhatIsExpectedOfAProtocolChangesWhereALinkIsSlow) {
    const costs::LinkPeaks peaks = costs::parseLinkPeaks("intra:gbps=300,alpha_us=1");
    facts::Communicator group;
    group.size = 8;
    const auto expected = [&](double measuredNs) {
        return *expectedOfLargeNs(peaks, group, Op::allReduce, 64e6, {store::Algorithm::ring, store::Protocol::ll},
                                  measuredNs);
    };
    const double healthyNs = expected(1);
    LinkProbe probe{.share = {0.75, 1}, .lateness = costs::healthyLateness({.nodes = 1}, 64e6)};
    probe.compareWithOthers();
    const double slowNs = probe.slowFrom() * healthyNs;
    EXPECT_GT(slowNs, 2 * healthyNs);
    EXPECT_EQ(expected(0.99 * slowNs), healthyNs);
    EXPECT_LT(expected(1.01 * slowNs), 0.9 * healthyNs);
}

/// One node's only group, whose messages of each size take `times` as long as the link's peak gives.
std::string foundAt(double times, const std::vector<double>& sizes) {
    test::Player player(8, 8, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 4; ++layer) player.compute(2e6, "forward");
        for (const double bytes : sizes) {
            player.compute(2e6, "backward");
            for (int k = 0; k < 4; ++k)
                player.blocking({world}, Op::allReduce, bytes, {times * (90e3 + bytes * 1.75 / 100)});
        }
        player.endStep();
    }
    return test::Player::found(player.trace.analyze());
}

TEST(LinkProbe, OneSizeMayBeAKinkWhereSeveralAreALink) {
    EXPECT_EQ(foundAt(4.5, {32e6}).find("RS204"), std::string::npos) << foundAt(4.5, {32e6});
    EXPECT_NE(foundAt(4.5, {32e6, 8e6}).find("RS204["), std::string::npos) << foundAt(4.5, {32e6, 8e6});
    // bucket_cap_mb=64: tensors do not add up to it to the byte
    EXPECT_EQ(foundAt(4.5, {(64 << 20) + 8192}).find("RS204"), std::string::npos) << foundAt(4.5, {(64 << 20) + 8192});
    EXPECT_NE(foundAt(4.5, {200e6}).find("RS204["), std::string::npos) << foundAt(4.5, {200e6});  // too large for one
    EXPECT_NE(foundAt(12, {32e6}).find("RS204["), std::string::npos) << foundAt(12, {32e6});
}

/// A rank a host, as stages of a pipeline whose messages take `messages` times what the link's peak gives, each pair of
/// neighbours or but the pair (2, 3); and, where `collectives` is no 0, so many times of all-reduces of pairs.
std::string foundBetweenStages(double messages, double others = 0, double collectives = 0, double bytes = 8e6) {
    test::TraceFixture trace(4, 1);
    trace.links("inter:gbps=40,alpha_us=10");
    const int chain = trace.communicator({0, 1, 2, 3});
    const int ends[] = {trace.communicator({0, 1}), trace.communicator({2, 3})};
    int64_t now = 0;
    for (int step = 0; step < 6; ++step) {
        const int64_t start = now;
        for (int micro = 0; micro < 8; ++micro)
            for (int stage = 0; stage < 4; ++stage) {
                trace.kernel(stage, now, test::kMs, "layer", 64);
                now += test::kMs;
                if (stage == 3) break;
                const double times = stage < 2 && others > 0 ? others : messages;
                now = trace.message(chain, stage, stage + 1, static_cast<int64_t>(bytes), now, now,
                                    static_cast<int64_t>(times * (10e3 + bytes / 40)));
            }
        for (int k = 0; k < 4 && collectives > 0; ++k) {
            const auto ns = static_cast<int64_t>(collectives * (40e3 + 32e6 / 40));
            for (const int pair : ends) trace.collective(pair, Op::allReduce, 32'000'000, {now, now}, ns);
            now += ns + test::kMs;
        }
        for (int rank = 0; rank < 4; ++rank) trace.step(rank, step, start, now - start, step == 0);
    }
    return test::Player::found(trace.analyze());
}

bool namesLinks(const std::string& found) {
    return found.find("RS204[") != std::string::npos || found.find("RS208[") != std::string::npos;
}

TEST(LinkProbe, TheOneSizeOfAPipelinesMessagesMayBeAKink) {
    EXPECT_FALSE(namesLinks(foundBetweenStages(4.7))) << foundBetweenStages(4.7);
    EXPECT_NE(foundBetweenStages(4.7, 0, 0, 200e6).find("RS204["), std::string::npos) << "too large for one";
    EXPECT_NE(foundBetweenStages(12).find("RS204["), std::string::npos) << foundBetweenStages(12);
}

TEST(LinkProbe, FastLinksOfOtherMessagesTellNothingOfAKink) {
    EXPECT_FALSE(namesLinks(foundBetweenStages(4, 0, 1))) << foundBetweenStages(4, 0, 1);
    EXPECT_FALSE(namesLinks(foundBetweenStages(1, 0, 4))) << foundBetweenStages(1, 0, 4);
}

TEST(LinkProbe, WhatSlowsOneOfSeveralLinksAlikeIsNoKink) {
    EXPECT_NE(foundBetweenStages(4, 1).find("RS208[2 3]"), std::string::npos) << foundBetweenStages(4, 1);
}

TEST(LinkProbe, WhatSlowsMessagesAndCollectivesIsNoKink) {
    EXPECT_NE(foundBetweenStages(4.7, 0, 4.7).find("RS204["), std::string::npos) << foundBetweenStages(4.7, 0, 4.7);
}

}  // namespace
}  // namespace rankscope::job
