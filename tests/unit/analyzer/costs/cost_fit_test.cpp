// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/cost_fit.h"

#include <gtest/gtest.h>

#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

facts::TraceFacts collectivesOf(const std::vector<std::pair<int64_t, int64_t>>& sizesAndTimes) {
    facts::TraceFacts facts;
    facts::Communicator& communicator = facts.communicators[1];
    communicator.id = 1;
    communicator.size = 4;
    int64_t id = 0;
    for (const auto& [bytes, timeNs] : sizesAndTimes) {
        store::Collective row;
        row.id = ++id;
        row.communicatorId = 1;
        row.op = store::Op::allReduce;
        row.bytes = bytes;
        row.transferNs = timeNs;
        facts.collectives.push_back(row);
    }
    return facts;
}

TEST(CostFit, FindsTheLineInSpiteOfOutliers) {
    std::vector<std::pair<int64_t, int64_t>> samples;
    for (int64_t size = 1 << 20; size <= 64 << 20; size *= 2)
        for (int i = 0; i < 5; ++i) samples.emplace_back(size, 50'000 + size / 100 + (i == 4 ? 9'000'000 : 0));
    const auto fits = fitCosts(collectivesOf(samples), {});
    ASSERT_EQ(fits.size(), 1u);
    EXPECT_NEAR(fits[0].alphaNs, 50'000, 500);
    EXPECT_NEAR(fits[0].betaNsPerByte, 0.01, 1e-4);
    EXPECT_NEAR(fits[0].crossoverBytes(), 5e6, 1e5);
    EXPECT_EQ(fits[0].source, "fit");
}

TEST(CostFit, TakesNoSlopeBetweenSizesThatAreAlike) {
    // Buckets that differ by a bias or two, and flags: most pairs of sizes are alike, and what lies between them is
    // noise.
    std::vector<std::pair<int64_t, int64_t>> samples{{10'000, 50'100}};
    for (int64_t i = 0; i < 5; ++i) samples.emplace_back(50'000'000 + i * 1000, 550'000 - i * 9'000);
    const auto fits = fitCosts(collectivesOf(samples), {});
    ASSERT_EQ(fits.size(), 1u);
    EXPECT_NEAR(fits[0].alphaNs, 50'000, 100);
    EXPECT_NEAR(fits[0].betaNsPerByte, 0.00965, 1e-4);
}

TEST(CostFit, TakesTheLinkPeakAsPriorWhereSizesHardlyDiffer) {
    const std::vector<std::pair<int64_t, int64_t>> samples{
        {1'000'000, 115'000}, {1'000'000, 115'000}, {2'000'000, 130'000}};
    const auto fits = fitCosts(collectivesOf(samples), parseLinkPeaks("intra:gbps=100"));
    ASSERT_EQ(fits.size(), 1u);
    EXPECT_NEAR(fits[0].betaNsPerByte, 0.015, 1e-6);  // factor 2 * 3 / 4 over 100 GB/s
    EXPECT_NEAR(fits[0].alphaNs, 100'000, 1'000);
    EXPECT_NE(fits[0].source.find("prior"), std::string::npos);
    EXPECT_TRUE(fitCosts(collectivesOf(samples), {}).empty()) << "without range and without peak there is no fit";
}

TEST(CostLine, IsNeverBelowZero) {
    const auto line = lineThrough({{1e3, {10}}, {1e4, {1'000}}, {1e6, {200'000}}}, store::Op::allReduce, 4);
    ASSERT_TRUE(line);
    EXPECT_GE(line->alphaNs, 0);
    EXPECT_GE(line->betaNsPerByte, 0);
    const auto flat = lineThrough({{1e3, {5'000}}, {1e4, {4'000}}, {1e6, {3'000}}}, store::Op::allReduce, 4);
    ASSERT_TRUE(flat);
    EXPECT_GE(flat->betaNsPerByte, 0);
}

TEST(CostLine, NeedsSizesThatDiffer) {
    EXPECT_FALSE(lineThrough({{1e6, {1'000}}, {3e6, {2'000}}}, store::Op::allReduce, 4));
    EXPECT_FALSE(lineThrough({}, store::Op::allReduce, 4, 100));
}

TEST(LinkPeaks, OverNodesEveryNicCounts) {
    const LinkPeaks peaks = parseLinkPeaks("intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18");
    facts::Communicator communicator;
    communicator.nodes = 1;
    EXPECT_EQ(peaks.busCeiling(communicator), 200);
    EXPECT_EQ(peaks.alphaPerHop(communicator), 6'000);
    communicator.nodes = 2;
    communicator.smallestNode = 4;
    EXPECT_EQ(peaks.busCeiling(communicator), 160);
    communicator.smallestNode = 8;
    EXPECT_EQ(peaks.busCeiling(communicator), 200);
    EXPECT_EQ(peaks.alphaPerHop(communicator), 18'000);
    EXPECT_FALSE(parseLinkPeaks("nonsense;inter:gbps=x").busCeiling(communicator).has_value());
}

}  // namespace
}  // namespace rankscope::costs
