// SPDX-License-Identifier: Apache-2.0
// Edits of how many ranks sum their gradients, and how often, on graphs small enough to be played by hand.
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hand_made_step.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::edits {
namespace {

TEST(StructuralEdits, MoreRanksAreMoreTokens) {
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=1;inter:gbps=100,alpha_us=1");
    replay::TaskGraph graph = test::ddpStep(false);
    EditEffect effect;
    parseEdit("dp-ranks:count=8")->apply(graph, analysis, effect);  // of two
    EXPECT_DOUBLE_EQ(effect.replicas, 4);
    parseEdit("dp-ranks:count=2")->apply(graph, present(analysis, effect), effect);
    EXPECT_DOUBLE_EQ(effect.replicas, 1);
}

/// Of thousands of ranks they are most of the analysis.
TEST(StructuralEdits, TheJobAsItIsAfterAChangeSharesItsRanks) {
    const job::Analysis analysis = test::SmallJob().analysis();
    EditEffect effect;
    effect.dataParallel = 4;
    const job::Analysis now = present(analysis, effect);
    EXPECT_EQ(now.layout.dp, 4);
    EXPECT_EQ(now.ranks.size(), 2u);
    EXPECT_EQ(now.ranks.data(), analysis.ranks.data());
    EXPECT_EQ(now.facts.collectives.data(), analysis.facts.collectives.data());
    EXPECT_EQ(now.facts.members.data(), analysis.facts.members.data());
    EXPECT_EQ(now.facts.pointToPoint.data(), analysis.facts.pointToPoint.data());
}

TEST(StructuralEdits, ReplicasCostWhatTheLinksSay) {
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const replay::TaskGraph graph = test::ddpStep(false);
    EXPECT_THROW(test::stepMsWith(*parseEdit("dp-ranks:count=4"), graph, analysis), EditError);  // no links known
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=1;inter:gbps=100,alpha_us=1");
    EXPECT_NEAR(test::stepMsWith(*parseEdit("dp-ranks:count=2"), graph, analysis), 10.8, 1e-6);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("dp-ranks:count=1"), graph, analysis), 7, 1e-6);
    EXPECT_GT(test::stepMsWith(*parseEdit("dp-ranks:count=8"), graph, analysis), 10.8);
    // Each change counts from the one before.
    EXPECT_NEAR(test::stepMsAfter({"dp-ranks:count=8", "dp-ranks:count=4"}, graph, analysis),
                test::stepMsAfter({"dp-ranks:count=4"}, graph, analysis), 1e-4);
    EXPECT_NEAR(test::stepMsAfter({"dp-ranks:count=8", "dp-ranks:count=2"}, graph, analysis), 10.8, 1e-4);
    EXPECT_THROW(test::stepMsAfter({"dp-ranks:count=1", "dp-ranks:count=4"}, graph, analysis), EditError);
}

TEST(StructuralEdits, LayersReducedOneByOneAreNoMicroSteps) {
    // Four equal buckets of one backward pass.
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const replay::TaskGraph graph = test::ddpStep(false, {8, 8, 8, 8});
    EXPECT_THROW(test::stepMsAfter({"reduce-once:micro-steps=4"}, graph, analysis), EditError);
    EXPECT_THROW(test::stepMsAfter({"reduce-once:micro-steps=2"}, graph, analysis), EditError);
}

/// Two nodes of two ranks, ten times as slow between as inside. Tensor-parallel groups {0, 2} and {1, 3} lie across,
/// gradients are summed inside.
job::Analysis acrossNodes() {
    job::Analysis analysis;
    const auto group = [&analysis](int64_t id, std::vector<int> ranks, int nodes, facts::CommRole role) {
        facts::Communicator& communicator = analysis.facts.communicators[id];
        communicator.id = id;
        communicator.size = communicator.smallestNode = 2;
        communicator.nodes = nodes;
        if (nodes > 1) communicator.smallestNode = 1;
        communicator.ranks = std::move(ranks);
        analysis.layout.roles[id] = role;
        analysis.layout.uses[id][store::Op::allReduce] = {role, 1};
    };
    group(1, {0, 2}, 2, facts::CommRole::activations);
    group(2, {1, 3}, 2, facts::CommRole::activations);
    group(3, {0, 1}, 1, facts::CommRole::gradients);
    group(4, {2, 3}, 1, facts::CommRole::gradients);
    for (int rank = 0; rank < 4; ++rank) {
        facts::RankFacts facts;
        facts.rank = rank;
        facts.hostId = rank / 2;
        analysis.facts.ranks.push_back(facts);
    }
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=0.000001;inter:gbps=10,alpha_us=0.000001");
    return analysis;
}

TEST(StructuralEdits, GroupsInsideNodesUseTheFastLinksAndTheOthersTheSlowOnes) {
    const job::Analysis analysis = acrossNodes();
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    std::vector<std::vector<replay::ExchangeMember>> first(2), second(2), sums(2);
    for (int rank = 0; rank < 4; ++rank) {
        test::Rank& of = ranks.emplace_back(draft, rank);
        const auto tensor = static_cast<size_t>(rank % 2), data = static_cast<size_t>(rank / 2);
        first[tensor].push_back(of.communicate(20, of.kernel(1, 1)));
        second[tensor].push_back(of.communicate(20, of.kernel(1, 1, first[tensor].back().transfer)));
        sums[data].push_back(of.communicate(2, replay::kNoTask));
        of.mark(true);
    }
    for (size_t g = 0; g < 2; ++g) {
        test::joinAll(draft, store::Op::allReduce, 100'000'000, first[g], 1 + static_cast<int64_t>(g));
        test::joinAll(draft, store::Op::allReduce, 100'000'000, second[g], 1 + static_cast<int64_t>(g));
        test::joinAll(draft, store::Op::allReduce, 100'000'000, sums[g], 3 + static_cast<int64_t>(g));
    }
    const replay::TaskGraph graph = *std::move(draft).seal();
    EXPECT_NEAR(test::stepMs(graph), 44, 1e-6);
    // 100 MB take 1 ms inside a node and 10 ms between nodes at best, twice that as measured on both.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("place"), graph, analysis), 1 + 2 + 1 + 2 + 20, 1e-6);
    EXPECT_THROW(test::stepMsWith(*parseEdit("place:communicator=3"), graph, analysis), EditError);  // inside already
    job::Analysis unknown = analysis;
    unknown.peaks = {};
    EXPECT_THROW(test::stepMsWith(*parseEdit("place"), graph, unknown), EditError);
    job::Analysis small = analysis;
    for (facts::RankFacts& rank : small.facts.ranks) rank.hostId = rank.rank;
    EXPECT_THROW(test::stepMsWith(*parseEdit("place"), graph, small), EditError);  // does not fit
}

}  // namespace
}  // namespace rankscope::edits
