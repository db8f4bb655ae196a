// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/places.h"

#include <gtest/gtest.h>

namespace rankscope::facts {
namespace {

TraceFacts factsOf(std::map<int64_t, std::vector<int>> groups) {
    TraceFacts facts;
    for (auto& [id, ranks] : groups) {
        Communicator& communicator = facts.communicators[id];
        communicator.id = id;
        communicator.size = static_cast<int>(ranks.size());
        communicator.ranks = ranks;
    }
    return facts;
}

TEST(Places, AreThoseInTheCommunicatorOfEachRoleAndTheStage) {
    const TraceFacts facts = factsOf({{1, {0, 1}}, {2, {2, 3}}, {3, {2, 0}}, {4, {1, 3}}, {5, {0, 1, 2, 3}}});
    Layout layout;
    layout.roles = {{1, CommRole::activations},
                    {2, CommRole::activations},
                    {3, CommRole::gradients},
                    {4, CommRole::shardedParameters},
                    {5, CommRole::control}};
    layout.pipelines.push_back({.stages = {3, 0}});
    const std::map<int, Places> places = placesOf(facts, layout);
    EXPECT_EQ(places.at(0), (Places{{"dp", 1}, {"pp", 1}, {"tp", 0}}));
    EXPECT_EQ(places.at(1), (Places{{"dp", 0}, {"tp", 1}}));
    EXPECT_EQ(places.at(2), (Places{{"dp", 0}, {"tp", 0}}));
    EXPECT_EQ(places.at(3), (Places{{"dp", 1}, {"pp", 0}, {"tp", 1}}));
}

TEST(Places, AreUnknownWhereMembersWereNotRecorded) {
    TraceFacts facts = factsOf({{1, {0, 1}}});
    facts.communicators.at(1).size = 4;
    Layout layout;
    layout.roles = {{1, CommRole::activations}};
    EXPECT_TRUE(placesOf(facts, layout).empty());
}

TEST(Places, OfSeveralCommunicatorsOfARoleTheLargestTells) {
    const TraceFacts facts = factsOf({{1, {0, 1, 2}}, {2, {2, 0}}});
    Layout layout;
    layout.roles = {{1, CommRole::gradients}, {2, CommRole::gradients}};
    EXPECT_EQ(placesOf(facts, layout).at(2), (Places{{"dp", 2}}));
}

}  // namespace
}  // namespace rankscope::facts
