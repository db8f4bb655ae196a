// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/facts/layout.h"

namespace rankscope::facts {
namespace {

Communicator group(int64_t id, std::vector<int> ranks, int size = 0, std::string name = {}) {
    Communicator communicator;
    communicator.id = id;
    communicator.size = size > 0 ? size : static_cast<int>(ranks.size());
    communicator.ranks = std::move(ranks);
    communicator.name = std::move(name);
    return communicator;
}

std::vector<int> everySecond(int count) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(2 * i);
    return ranks;
}

TEST(CommunicatorName, IsRoleAndRanks) {
    TraceFacts facts;
    Layout layout;
    facts.communicators = {{1, group(1, {3, 0, 1, 2})},
                           {2, group(2, {0, 4})},
                           {3, group(3, everySecond(64))},
                           {4, group(4, {5}, 8)},
                           {5, group(5, {0, 1}, 0, "embeddings")}};
    layout.roles = {
        {1, CommRole::activations}, {2, CommRole::gradients}, {3, CommRole::shardedParameters}, {4, CommRole::experts}};
    const std::map<int64_t, std::string> names = communicatorNames(facts, layout);
    EXPECT_EQ(names.at(1), "tensor parallel 0-3");
    EXPECT_EQ(names.at(2), "data parallel 0,4");
    EXPECT_EQ(names.at(3), "sharded data parallel 0,2,...,126 (64 ranks)");
    EXPECT_EQ(names.at(4), "expert parallel 5 and 7 ranks not recorded");
    EXPECT_EQ(names.at(5), "embeddings 0-1");
    EXPECT_EQ(communicatorName(facts, layout, 2), "data parallel 0,4");
    EXPECT_EQ(communicatorName(facts, layout, 77), "communicator 77");
}

TEST(CommunicatorName, IsUnlikeAnyOtherOfTheRun) {
    TraceFacts facts;
    Layout layout;
    facts.communicators = {{1, group(1, {0, 1})}, {2, group(2, {0, 1})}, {3, group(3, {0, 1})}};
    layout.roles = {{1, CommRole::gradients}, {2, CommRole::gradients}, {3, CommRole::activations}};
    const std::map<int64_t, std::string> names = communicatorNames(facts, layout);
    EXPECT_EQ(names.at(1), "data parallel 0-1 (communicator 1)");
    EXPECT_EQ(names.at(2), "data parallel 0-1 (communicator 2)");
    EXPECT_EQ(names.at(3), "tensor parallel 0-1");
}

}  // namespace
}  // namespace rankscope::facts
