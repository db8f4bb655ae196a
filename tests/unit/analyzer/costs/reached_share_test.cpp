// SPDX-License-Identifier: Apache-2.0
// Which share of a rate healthy links reach: by the medium and by how the rate is known.
#include "analyzer/costs/reached_share.h"

#include <gtest/gtest.h>

#include "analyzer/costs/device_links.h"
#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {
namespace {

TEST(ReachedShare, WhatWasReachedIsAllThereIs) {
    for (const PeakKind kind : {PeakKind::measured, PeakKind::atLeast}) {
        const ReachedShare reached = reachedShare({300, 0, kind, "", LinkMedium::nvlink}, false);
        EXPECT_EQ(reached.share.low, 1);
        EXPECT_EQ(reached.share.high, 1);
        EXPECT_TRUE(reached.what.empty());
    }
}

TEST(ReachedShare, ATellerMayMeanTheDataSheetOrWhatWasReached) {
    const ReachedShare told = reachedShare({300, 0, PeakKind::told, "--links"}, false);
    const ReachedShare machine = reachedShare({300, 0, PeakKind::machine, "NVML", LinkMedium::nvlink}, false);
    EXPECT_EQ(told.share.low, machine.share.low);
    EXPECT_EQ(told.share.high, 1);
    EXPECT_LT(machine.share.high, 1);
    EXPECT_FALSE(told.what.empty());
}

TEST(ReachedShare, PcieIsTheDeviceTablesOrWhatIsSlowerThanAnyNvlink) {
    // L40S reach 15 GB/s, whether somebody tells the line's 31.5 or the table has what NCCL counts of them.
    const LinkClass told{31.5, 0, PeakKind::told, "--links"};
    const LinkClass table = *deviceLinkOf("NVIDIA L40S");
    for (const LinkClass& link : {told, table}) {
        EXPECT_EQ(mediumOf(link, false), LinkMedium::pcie);
        EXPECT_NEAR(reachedShare(link, false).share.low * link.bytesPerNs, 15.1, 0.1);
    }
    EXPECT_EQ(deviceLinkOf("NVIDIA H100 PCIe")->medium, LinkMedium::pcie);
    EXPECT_EQ(deviceLinkOf("NVIDIA A100-SXM4-80GB")->medium, LinkMedium::nvlink);
    EXPECT_EQ(deviceLinkOf("AMD Instinct MI300X")->medium, LinkMedium::infinityFabric);
}

TEST(ReachedShare, GeForceBoardsGoThroughHostMemory) {
    // nccl-tests reach 2.24 GB/s on two RTX 4090 and 2.46 on eight RTX 2080 Ti: neither is a slow link.
    for (const auto& [name, gbps] : {std::pair{"NVIDIA GeForce RTX 4090", 2.24}, {"GeForce RTX 2080 Ti", 2.46}}) {
        const std::optional<LinkClass> table = deviceLinkOf(name);
        ASSERT_TRUE(table) << name;
        EXPECT_EQ(table->medium, LinkMedium::hostMemory) << name;
        EXPECT_LE(reachedShare(*table, false).share.low * table->bytesPerNs, gbps) << name;
        EXPECT_NE(table->source.find("no peer access"), std::string::npos) << name;
    }
    EXPECT_EQ(deviceLinkOf("NVIDIA RTX 6000 Ada Generation")->medium, LinkMedium::pcie);
}

TEST(ReachedShare, Pcie5LiesBetweenNvlinks) {
    const auto medium = [](double gbps) { return mediumOf({gbps, 0, PeakKind::told, "--links"}, false); };
    for (const double gbps : {15.75, 31.5, 63.0, 64.0}) EXPECT_EQ(medium(gbps), LinkMedium::pcie) << gbps;
    for (const double gbps : {50.0, 56.25, 60.0, 75.0, 150.0, 450.0})
        EXPECT_EQ(medium(gbps), LinkMedium::nvlink) << gbps;
}

TEST(ReachedShare, NetworksDifferByKind) {
    const auto low = [](LinkMedium medium) {
        return reachedShare({25, 0, PeakKind::machine, "sysfs", medium}, true).share.low;
    };
    EXPECT_GT(low(LinkMedium::infiniband), low(LinkMedium::unknown));
    EXPECT_GT(low(LinkMedium::unknown), low(LinkMedium::ethernet));
}

TEST(ReachedShare, ACeilingIsThatOfTheClassThatSetsIt) {
    LinkPeaks peaks = parseLinkPeaks("intra:gbps=24;inter:gbps=40");
    facts::Communicator group = pairOfRanks(true);
    EXPECT_EQ(ceilingShare(peaks, group).share.low, reachedShare(*peaks.intra, false).share.low);  // the port limits
    peaks.intra->bytesPerNs = 300;
    EXPECT_EQ(ceilingShare(peaks, group).share.low, reachedShare(*peaks.inter, true).share.low);
    EXPECT_EQ(ceilingShare({}, group).share.low, 1);
}

/// A tree between two nodes crosses the network half as often as a ring.
TEST(BestCeiling, IsThatOfTheBestAlgorithm) {
    const LinkPeaks peaks = parseLinkPeaks("intra:gbps=200;inter:gbps=10");
    facts::Communicator group;
    group.size = 8;
    group.nodes = 2;
    group.smallestNode = 4;
    EXPECT_GT(*bestCeiling(peaks, group, store::Op::allReduce), 1.5 * *peaks.busCeiling(group, store::Op::allReduce));
    EXPECT_EQ(*bestCeiling(peaks, group, store::Op::allGather), *peaks.busCeiling(group, store::Op::allGather));
    EXPECT_FALSE(bestCeiling({}, group, store::Op::allReduce));
}

}  // namespace
}  // namespace rankscope::costs
