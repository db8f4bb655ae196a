// SPDX-License-Identifier: Apache-2.0
// What-if edits on a job small enough to be played by hand.
#include <gtest/gtest.h>

#include <array>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/replay/graph_draft.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::edits {
namespace {

/// Two sizes that tell the start-up of the job's reductions.
void addFit(job::Analysis& analysis, int64_t alphaNs) {
    facts::TraceFacts facts;
    facts.communicators[test::SmallJob::kCommunicator].size = 2;
    for (const int64_t bytes : {1'000, 4'000}) {
        store::Collective reduction;
        reduction.communicatorId = test::SmallJob::kCommunicator;
        reduction.op = store::Op::allReduce;
        reduction.bytes = bytes;
        reduction.transferNs = alphaNs + bytes / 100;
        facts.collectives.push_back(reduction);
    }
    analysis.cost = costs::CollectiveCost(facts, {});
}

void addStalls(job::Analysis& analysis, facts::IdleCause cause, int32_t callName, int64_t submission) {
    for (const auto held = analysis.ranks.change(); facts::RankSummary & rank : *held) {
        facts::HostStall stall;
        stall.step = 0;
        stall.stallNs = 50;
        stall.cause = cause;
        stall.callNameId = callName;
        stall.submissionId = submission;
        rank.hostStalls.push_back(stall);
    }
}

std::string refusal(const job::Analysis& analysis, const std::string& change) {
    try {
        test::stepAfter(analysis, {change});
    } catch (const EditError& error) {
        EXPECT_FALSE(error.hint().empty()) << error.what();
        return error.what();
    }
    return "accepted";
}

TEST(Edits, TheUnchangedJobIsTheOneOfTheComment) {
    EXPECT_EQ(test::SmallJob().analysis().replay.predictedStepNs, 201);
}

TEST(Edits, ABalancedRankTakesTheMedianOfItsPeers) {
    const job::Analysis analysis = test::SmallJob().analysis();
    EXPECT_EQ(test::stepAfter(analysis, {"balance:ranks=1"}), 151);
    EXPECT_EQ(test::stepAfter(analysis, {"balance"}), 151);  // nobody gets slower
    EXPECT_EQ(test::stepAfter(analysis, {"balance:ranks=0"}), 201);
}

TEST(Edits, SharedWorkIsTheMeanOfTheRanks) {
    EXPECT_EQ(test::stepAfter(test::SmallJob{.differentGrids = true}.analysis(), {"balance:what=work"}), 176);
}

TEST(Edits, RanksThatAreNotReplayedTakeTheirPartOfSharedWork) {
    const auto after = [](int64_t kernelNs) {
        return test::stepAfter(test::withRankLeftOut(test::SmallJob{.differentGrids = true}.analysis(), kernelNs),
                               {"balance:what=work"});
    };
    EXPECT_EQ(after(50), 151);  // the mean of 100, 150 and 50
    EXPECT_EQ(after(110), 171);
    EXPECT_EQ(after(0), 201);  // it has no such work
}

TEST(Edits, WhatIsOfRanksThatAreNotReplayedIsToldOrRefused) {
    job::Analysis analysis = test::withRankLeftOut(test::SmallJob().analysis(), 100);
    analysis.facts.communicators[8] = {.id = 8, .size = 1, .ranks = {2}};
    for (const char* change : {"algorithm:algo=ring,communicator=8", "speed:factor=2,communicator=8"})
        EXPECT_EQ(refusal(analysis, change), "communicator 8 is of ranks that others stand for in the replay");
    addFit(analysis, 10);
    EXPECT_EQ(TrialJob(analysis)
                  .with(parseEdits({"speed:factor=2,links=rank,ranks=0+2"}), Outlook::expected)
                  .effect.assumed.back(),
              "transfers of rank 2 with ranks that are not replayed stay as they are: others stand for these in the "
              "replay");
}

TEST(Edits, RanksThatAreNotReplayedShareWorkThatHasBecomeLess) {
    const job::Analysis analysis = test::withRankLeftOut(test::SmallJob{.differentGrids = true}.analysis(), 50);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2", "balance:what=work"}), 101);  // of 50, 75 and 25
}

TEST(Edits, KernelsAreSpedUpByRankAndName) {
    const job::Analysis analysis = test::SmallJob().analysis();
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=1.5,ranks=1"}), 151);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,kernel=gemm*"}), 126);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,kernel=gemm*,ranks=0"}), 201);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=0.5,ranks=1"}), 351);
}

TEST(Edits, OfATransferOnlyTheBytesGetFaster) {
    job::Analysis analysis = test::SmallJob().analysis();
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,communicator=7"}), 186);  // start-up unknown
    addFit(analysis, 10);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,communicator=7"}), 191);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=inf,links=intra"}), 181);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,links=rank,ranks=0"}), 191);
    EXPECT_EQ(test::stepAfter(analysis, {"bytes:factor=0.5"}), 191);
    EXPECT_EQ(test::stepAfter(analysis, {"gradients:dtype=bf16"}), 191);
}

TEST(Edits, SeveralCommunicatorsAreNamedAtOnce) {
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.facts.communicators[8] = analysis.facts.communicators[9] = analysis.facts.communicators.at(7);
    EXPECT_EQ(test::stepAfter(analysis, {"speed:factor=2,communicator=7-9"}), 186);
    EXPECT_EQ(test::stepAfter(analysis, {"bytes:factor=0.5,communicator=7+9"}), 186);
    EXPECT_EQ(TrialJob(analysis)
                  .with(parseEdits({"bytes:factor=1,communicator=7-9"}), Outlook::expected)
                  .effect.assumed.back(),
              "communicators 8-9 carry nothing in this run: the change leaves them as they are");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,communicator=8+9"), "communicators 8-9 carry nothing in this run");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,communicator=7-10"), "there is no communicator 10 in this run");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,communicator=7,links=intra"),
              "change 'speed:factor=2,communicator=7,links=intra': either communicator or links");
}

TEST(Edits, UnknownStartUpTimesAreToldInOneSentence) {
    const auto assumed = [](const job::Analysis& analysis) {
        return TrialJob(analysis).with(parseEdits({"speed:factor=2,links=intra"}), Outlook::expected).effect.assumed;
    };
    job::Analysis analysis = test::SmallJob{.reductions = 3}.analysis();
    EXPECT_EQ(assumed(analysis),
              std::vector<std::string>{"start-up time on communicator 7 is unknown (one size of message, no configured "
                                       "link): its transfers count as bytes only"});
    for (int64_t id : {5, 6}) analysis.facts.communicators[id] = analysis.facts.communicators.at(7);
    replay::TaskGraph& graph = analysis.replay.graph;
    for (size_t i = 0; i < graph.exchanges.size(); ++i)
        graph.exchanges.own(i).communicatorId = static_cast<uint32_t>(5 + i % 3);
    EXPECT_EQ(assumed(analysis),
              std::vector<std::string>{"start-up time on communicators 5-7 is unknown (one size of message, no "
                                       "configured link): their transfers count as bytes only"});
}

TEST(Edits, AnIdealNetworkHasNoLatencyOrNoBytesOrNeither) {
    job::Analysis analysis = test::SmallJob().analysis();
    addFit(analysis, 10);
    EXPECT_EQ(test::stepAfter(analysis, {"network:ideal=latency"}), 191);
    EXPECT_EQ(test::stepAfter(analysis, {"network:ideal=bandwidth"}), 181);
    EXPECT_EQ(test::stepAfter(analysis, {"network"}), 171);
}

TEST(Edits, ChangesAreMadeOneAfterTheOther) {
    EXPECT_EQ(test::stepAfter(test::SmallJob().analysis(), {"balance:ranks=1", "network"}), 121);
    EXPECT_EQ(test::stepAfter(test::SmallJob().analysis(), {"speed:factor=2", "balance"}), 101);
}

TEST(Edits, OnlyTheLastReductionIsLeft) {
    const job::Analysis analysis = test::SmallJob{.reductions = 2}.analysis();
    EXPECT_EQ(analysis.replay.predictedStepNs, 381);
    EXPECT_EQ(test::stepAfter(analysis, {"reduce-once:micro-steps=2"}), 351);
    EXPECT_NE(refusal(analysis, "reduce-once:micro-steps=3"), "accepted");
    // What is gone does not come back with a later change.
    EXPECT_EQ(test::stepAfter(analysis, {"reduce-once:micro-steps=2", "speed:factor=0.5,communicator=7"}), 381);
    EXPECT_EQ(test::stepAfter(analysis, {"reduce-once:micro-steps=2", "network"}), 321);
}

TEST(Edits, ABlockingCallInsideTheStepGoesAndTheLastOneStays) {
    job::Analysis analysis = test::SmallJob{.readBackNs = 50}.analysis();
    EXPECT_EQ(analysis.replay.predictedStepNs, 257);  // 11 + 150, 50 of work, 6 to the device, 30, 10
    addStalls(analysis, facts::IdleCause::blockingCall, test::SmallJob::kWaitName, 0);
    EXPECT_EQ(test::stepAfter(analysis, {"no-stalls:cause=sync"}), 201);
    EXPECT_EQ(test::stepAfter(analysis, {"no-stalls"}), 201);
    EXPECT_NE(refusal(analysis, "no-stalls:cause=allocator"), "accepted");
}

TEST(Edits, ALateInputIsThereInTime) {
    job::Analysis analysis = test::SmallJob().analysis();
    // The first call of rank 1 in step 1 (rows count 2 calls and a wait of each rank in a step): 400 ns late.
    replay::TaskGraph& graph = analysis.replay.graph;
    int64_t row = 0;
    for (replay::TaskId task = 0; task < graph.size() && row == 0; ++task) {
        if (graph.info[task].kind != replay::TaskKind::host || graph.info[task].step != 1 ||
            graph.info[task].row == 0 || graph.rankOf(task) != 1)
            continue;
        row = graph.info[task].row;
        graph.leadNs[task] += 400;
    }
    analysis.replay.playUnchanged();
    EXPECT_NEAR(analysis.replay.predictedStepNs, 201 + 400 / 3.0, 1e-6);
    addStalls(analysis, facts::IdleCause::input, 0, row);
    // The usual work between two calls is 5 ns, also where a step of the rank begins: that one comes 5 ns earlier than
    // the first job's.
    EXPECT_NEAR(test::stepAfter(analysis, {"no-stalls:cause=input,ranks=1"}), 201 - 5 / 3.0, 1e-6);
}

TEST(Edits, FactorsThatNoJobHasAreRefused) {
    for (const char* text : {"speed:factor=1e-300", "speed:factor=1e7", "bytes:factor=1e18", "bytes:factor=inf",
                             "bytes:factor=0", "speed:factor=nan"})
        EXPECT_THROW(parseEdit(text), EditError) << text;
    EXPECT_NO_THROW(parseEdit("speed:factor=inf"));
}

TEST(Edits, AGraphTakesTheHostsWorkBetweenLaunches) {
    const job::Analysis analysis = test::SmallJob().analysis();
    ChangedJob job = unchangedJob(analysis);
    change(job, *parseEdit("graphs"), analysis);
    int64_t before = 0, after = 0;
    for (replay::TaskId task = 0; task < job.graph.size(); ++task) {
        if (job.graph.info[task].kind != replay::TaskKind::host) continue;
        before += analysis.replay.graph.leadNs[task] + analysis.replay.graph.durationNs[task];
        after += job.graph.leadNs[task] + job.graph.durationNs[task];
    }
    EXPECT_EQ(before - after, 2 * 3 * (5 + 2));  // of the second call of each rank and step
}

TEST(Edits, ASteadyStepTakesNoLongerThanTheOthers) {
    const job::Analysis analysis = test::SmallJob{.extraNs = 300}.analysis();
    EXPECT_EQ(analysis.replay.predictedStepNs, 301);
    EXPECT_EQ(test::stepAfter(analysis, {"steady:steps=1,ranks=1"}), 201);
    EXPECT_EQ(test::stepAfter(analysis, {"steady:steps=1,ranks=0"}), 301);
    EXPECT_EQ(refusal(analysis, "steady:steps=9"), "step 9 is not among the analysed ones");
}

TEST(Edits, KernelsBesideCommunicationRunAsAlone) {
    replay::GraphDraft draft;
    const uint32_t compute = draft.addLane({0, false, 1}), network = draft.addLane({0, false, 2});
    const replay::TaskId kernel =
        draft.addTask({compute & replay::kNoLane, replay::TaskKind::kernel, 0, draft.addKernelKey({1, 1, 1}), 0}, 150);
    draft.addTask({network & replay::kNoLane, replay::TaskKind::arrival, 0, 0, 0}, 0);
    draft.addTask({network & replay::kNoLane, replay::TaskKind::transfer, 0, 0, 0}, 100);
    std::vector<replay::TaskId> numbers;
    replay::TaskGraph graph = *std::move(draft).seal(&numbers);
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.ranks.own(0).contention.samples = 5;
    analysis.ranks.own(0).contention.lostShare = 0.3;
    EditEffect effect;
    parseEdit("no-contention")->apply(graph, analysis, effect);
    EXPECT_EQ(graph.durationNs[numbers[kernel]], 150 - 30);
}

TEST(Edits, TokensAreSharedSoThatTheBusiestPortCarriesTheMean) {
    replay::GraphDraft draft;
    std::vector<replay::TaskId> transfers, arrivals;
    for (int rank = 0; rank < 2; ++rank) {
        const uint32_t lane = draft.addLane({rank, false, rank});
        arrivals.push_back(draft.addTask({lane & replay::kNoLane, replay::TaskKind::arrival, 0, 0, 0}, 0));
        transfers.push_back(draft.addTask({lane & replay::kNoLane, replay::TaskKind::transfer, 0, 0, 0}, 30));
    }
    for (int rank = 0; rank < 2; ++rank) {
        replay::Exchange message;
        message.op = store::Op::send;
        message.communicatorId = test::SmallJob::kCommunicator;
        message.bytes = rank == 0 ? 300 : 100;
        const auto to = static_cast<size_t>(1 - rank), from = static_cast<size_t>(rank);
        const std::array<replay::ExchangeMember, 2> members{
            replay::ExchangeMember{rank, arrivals[from], transfers[from]},
            replay::ExchangeMember{1 - rank, arrivals[to], transfers[to]}};
        draft.addExchange(message, members);
    }
    std::vector<replay::TaskId> numbers;
    replay::TaskGraph graph = *std::move(draft).seal(&numbers);
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.layout.uses[test::SmallJob::kCommunicator][store::Op::send] = {facts::CommRole::experts, 1};
    EditEffect effect;
    parseEdit("balance:what=work")->apply(graph, analysis, effect);
    for (replay::TaskId transfer : transfers) EXPECT_EQ(graph.durationNs[numbers[transfer]], 20);
}

TEST(Edits, WhatIsNotUnderstoodIsRefusedWithWhatIsPossible) {
    const job::Analysis analysis = test::SmallJob().analysis();
    EXPECT_EQ(refusal(analysis, "faster"), "'faster' is no change");
    EXPECT_EQ(refusal(analysis, "speed"), "change 'speed': factor is missing");
    EXPECT_EQ(refusal(analysis, "speed:factor=0"),
              "change 'speed:factor=0': factor is '0', but must be a number from 1e-06 to 1e+06, or inf");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,factor=3"), "change 'speed:factor=2,factor=3': factor is given twice");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,colour=red"),
              "change 'speed:factor=2,colour=red': there is no colour here");
    EXPECT_EQ(refusal(analysis, "network:ideal=cost"),
              "change 'network:ideal=cost': ideal is 'cost', but may be latency, bandwidth, both");
    EXPECT_EQ(refusal(analysis, "balance:ranks=3-1"),
              "change 'balance:ranks=3-1': ranks is '3-1', but must be like 3, 0+4 or 0-3");
    EXPECT_EQ(refusal(analysis, "balance:ranks=2"), "rank 2 is not in this run");
    EXPECT_EQ(refusal(analysis, "balance:ranks=0-1"), "all ranks are to be balanced, and none is left to compare with");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,communicator=8"), "there is no communicator 8 in this run");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,kernel=conv*"), "no kernel is named 'conv*'");
    EXPECT_EQ(refusal(analysis, "speed:factor=2,links=inter"), "no transfer of this run goes over such a link");
    EXPECT_EQ(refusal(analysis, "no-contention"), "no kernel of this run is slower beside communication than alone");
}

TEST(Edits, EveryFamilyIsListedAndSaysWhatItNeeds) {
    const std::string list = listEdits();
    for (const EditFamily& family : editFamilies()) {
        EXPECT_NE(list.find(family.syntax), std::string::npos);
        EXPECT_TRUE(std::string_view(family.syntax).starts_with(family.name)) << family.syntax;
    }
}

TEST(Edits, ARunIsOfferedWhatItCanBeAskedForAndToldWhyNotTheRest) {
    const std::string list = listEdits(test::SmallJob{.extraNs = 30}.analysis());
    const size_t others = list.find("\nNot for this run\n");
    ASSERT_NE(others, std::string::npos) << list;
    EXPECT_LT(list.find("balance[:ranks="), others);  // before it, not merely nowhere: npos is larger
    EXPECT_LT(list.find("speed:factor=F"), others);
    const size_t why = list.find("micro-batches:count=8: this job is no pipeline\n");
    EXPECT_TRUE(why != std::string::npos && why > others) << list;
    EXPECT_EQ(list.find("micro-batches:count=M"), std::string::npos);
    for (const EditFamily& family : editFamilies()) EXPECT_NE(list.find(family.name), std::string::npos) << family.name;
}

TEST(WhatIf, TellsTheSavingAndWhereTheTimeGoes) {
    const job::Analysis analysis = test::SmallJob{.extraNs = 30}.analysis();
    std::vector<std::unique_ptr<Edit>> edits;
    edits.push_back(parseEdit("speed:factor=2,ranks=1"));
    const WhatIf result = whatIf(analysis, edits);
    EXPECT_EQ(result.replayedStepNs, 211);
    EXPECT_EQ(result.changedStepNs, 151);     // rank 0's 100 ns set the pace now
    EXPECT_EQ(result.savingNs.expected, 50);  // of 50, 80, 50: the typical step's, as a report and `recommend` give it
    EXPECT_NEAR(result.savingNs.high - result.savingNs.expected, 15,
                1e-9);  // half of what lies between the quartiles, 50 and 80; the mean of 60 is in it
    ASSERT_EQ(result.before.size(), 2u);
    EXPECT_EQ(result.before[1].computeNs, 160);
    EXPECT_EQ(result.after[1].computeNs, 80);
    EXPECT_EQ(result.before[0].waitingNs, 60);
    EXPECT_EQ(result.after[0].waitingNs, 0);
    ASSERT_FALSE(result.pathBefore.empty());
    EXPECT_EQ(result.pathBefore[0].category, replay::PathCategory::compute);
    EXPECT_EQ(result.pathBefore[0].rank, 1);
    EXPECT_EQ(result.pathBefore[0].nsPerStep, 160);
    EXPECT_EQ(result.pathAfter[0].rank, 0);
    double sum = 0;
    for (const replay::PathShare& share : result.pathBefore) sum += share.nsPerStep;
    EXPECT_EQ(sum, 211);
}

/// All-reduces of 30 ns over a ring with LL, on a link where the formulas give it 27 to 54 ns and Simple 16.
job::Analysis reducedWithLl() {
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.peaks.intra = costs::LinkClass{100, 1};
    analysis.peaks.source = "configured";
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks);
    replay::SharedList<replay::Exchange>& exchanges = analysis.replay.graph.exchanges;
    for (size_t i = 0; i < exchanges.size(); ++i) {
        exchanges.own(i).algorithm = store::Algorithm::ring;
        exchanges.own(i).protocol = store::Protocol::ll;
    }
    return analysis;
}

TEST(Edits, AnotherProtocolTakesWhatItsFormulaSays) {
    EXPECT_EQ(test::stepAfter(reducedWithLl(), {"algorithm:proto=simple"}), 187);
    EXPECT_EQ(test::stepAfter(reducedWithLl(), {"algorithm:proto=simple,op=allreduce,communicator=7"}), 187);
    EXPECT_EQ(test::stepAfter(reducedWithLl(), {"algorithm:proto=ll"}), 201);
    EXPECT_NE(refusal(reducedWithLl(), "algorithm:algo=pat").find("can run that way"), std::string::npos);
    EXPECT_NE(refusal(reducedWithLl(), "algorithm:proto=simple,op=allgather").find("can run that way"),
              std::string::npos);
    EXPECT_NE(refusal(reducedWithLl(), "algorithm:op=allreduce").find("algo or proto is missing"), std::string::npos);
}

TEST(Edits, ASecondAlgorithmReplacesTheFirst) {
    EXPECT_EQ(test::stepAfter(reducedWithLl(), {"algorithm:proto=simple", "algorithm:proto=ll"}), 201);
    EXPECT_EQ(test::stepAfter(reducedWithLl(), {"algorithm:proto=simple", "algorithm:proto=simple"}), 187);
}

TEST(Edits, ASlowLinkStaysSlowWithAnotherProtocol) {
    job::Analysis analysis = reducedWithLl();
    // A link of a tenth of the peak, of which LL reaches half: 400 ns, with Simple 200.
    for (const replay::Exchange& exchange : analysis.replay.graph.exchanges)
        for (const replay::ExchangeMember& member : analysis.replay.graph.membersOf(exchange))
            analysis.replay.graph.durationNs[member.transfer] = 400;
    const double slow = test::stepAfter(analysis, {"algorithm:proto=ll"}),
                 faster = test::stepAfter(analysis, {"algorithm:proto=simple"});
    EXPECT_NEAR(slow - faster, 200, 12);
}

TEST(Edits, WhatNcclChoosesByItselfChangesOnlyWhereAVariableForcedIt) {
    job::Analysis analysis = reducedWithLl();
    analysis.facts.meta["env.NCCL_PROTO"] = "LL";
    EXPECT_LE(test::stepAfter(analysis, {"algorithm:algo=auto"}), 187);
    analysis.facts.meta["env.NCCL_PROTO"] = "allgather:LL";
    EXPECT_EQ(test::stepAfter(analysis, {"algorithm:algo=auto"}), 201);
}

TEST(SharedTransfers, CountWhatRunsBesideThemOnTheSameRank) {
    facts::TraceFacts facts;
    for (int64_t id : {1, 2, 3}) {
        store::Collective collective;
        collective.id = id;
        collective.communicatorId = id;
        collective.transferNs = 100;
        facts.collectives.push_back(collective);
    }
    const auto add = [&](int rank, int64_t id, int64_t endNs) {
        store::CollectiveMember member;
        member.rank = rank;
        member.collectiveId = id;
        member.endNs = endNs;
        facts.members.push_back(member);
    };
    add(0, 1, 100);
    add(0, 2, 175);   // the last 25 ns of the first
    add(1, 3, 1000);  // alone on its rank
    EXPECT_EQ(costs::sharedTransfers(facts), (std::map<int64_t, double>{{1, 0.25}, {2, 0.25}}));
}

}  // namespace
}  // namespace rankscope::edits
