// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/diagnose/slow_ranks.h"

namespace rankscope::diagnose {
namespace {

TEST(LossForRanks, SmallPartsAreNotCalledNothing) {
    job::Analysis analysis;
    analysis.delays.lostBy = {{0, 1'000.0}, {1, 1'000.0}, {2, 300.0}};
    analysis.delays.pairs = {{{2, 0}, 5.0}, {{3, 0}, 500.0}, {{3, 1}, 75.0}};
    const auto told = [&](int rank) {
        job::Finding finding;
        addLossForRanks(analysis, {rank}, "rank " + std::to_string(rank), finding);
        return finding.evidence.facts;
    };
    EXPECT_EQ(told(2), std::vector<std::string>{
                           "less than 1 % of what the others lose to late ranks, waiting and transfer, is for rank 2"});
    EXPECT_EQ(told(3), std::vector<std::string>{
                           "25 % of what the others lose to late ranks, waiting and transfer, is for rank 3"});
    EXPECT_TRUE(told(0).empty());
}

}  // namespace
}  // namespace rankscope::diagnose
