// SPDX-License-Identifier: Apache-2.0
// Edits of pipelines: micro-batches, schedules, stages of other layers, on graphs small enough to be played by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/edits/pipeline.h"
#include "tests/unit/analyzer/hand_made_step.h"

namespace rankscope::edits {
namespace {

/// A pipeline as its plan says: a forward pass is `layers` kernels of 1 / layers ms in all, a backward pass takes twice
/// that, messages take no time. Optimizer 1 ms. `slower`: by stage, how many times as long its passes take; empty:
/// once. `steps` of it, one behind the other; step `greeting` begins with a message to the next stage that is none of
/// the schedule. Backward passes behind the first one of a step add to the gradients, which takes `addMs`.
replay::GraphDraft pipelineDraft(int steps, const PipelineShape& shape, int layers,
                                 const std::vector<double>& slower = {}, int greeting = -1, double addMs = 0) {
    replay::GraphDraft draft;
    std::map<std::tuple<int, bool, int, int>, std::array<replay::ExchangeMember, 2>> messages;
    const int perChunk = layers / shape.virtualStages;
    for (int stage = 0; stage < shape.stages; ++stage) {
        const double factor = slower.empty() ? 1 : slower[static_cast<size_t>(stage)];
        test::Rank rank(draft, stage);
        for (; rank.step < steps; ++rank.step) {
            if (rank.step > 0) rank.mark(false);
            for (int place = std::max(0, stage - 1); rank.step == greeting && place <= stage; ++place)
                if (place + 1 < shape.stages)
                    messages[{rank.step, true, -1, place}][place == stage ? 0 : 1] =
                        rank.communicate(0, draft.last(rank.compute));
            replay::TaskId received = replay::kNoTask;
            for (const PlannedRun& run : planStage(shape, stage)) {
                for (const Pass& pass : run.work) {
                    const bool forward = pass.part == StepPart::forward;
                    for (int layer = 0; layer < perChunk; ++layer) {
                        for (uint32_t key : {0u, 1u}) {
                            rank.kernel(forward ? key : 2 + key, factor * (forward ? 0.5 : 1.0) / layers, received);
                            received = replay::kNoTask;
                        }
                    }
                    if (!forward && pass.micro > 0 && addMs > 0) rank.kernel(7, addMs);
                }
                if (run.messages.empty()) continue;
                const replay::ExchangeMember member = rank.communicate(0, draft.last(rank.compute));
                for (const PipelineMessage& message : run.messages)
                    messages[{rank.step, message.activation, message.micro, message.place}][message.send ? 0 : 1] =
                        member;
                if (run.receives()) received = member.transfer;
            }
            rank.kernel(9, 1, received);
        }
        --rank.step;
        rank.mark(true);
    }
    for (const auto& [key, members] : messages) {
        replay::Exchange exchange;
        exchange.communicatorId = test::kGroup;
        exchange.op = store::Op::send;
        exchange.bytes = test::kMebi;
        exchange.step = std::get<0>(key);
        const uint32_t number = draft.addExchange(exchange, members);
        for (const replay::ExchangeMember& member : members)
            draft.info(member.arrival).detail = draft.info(member.transfer).detail = number;
        draft.addEdge(members[0].transfer, members[1].arrival, replay::WaitKind::peer);
        draft.addEdge(members[1].transfer, members[0].arrival, replay::WaitKind::peer);
    }
    return draft;
}

replay::TaskGraph pipelineSteps(int steps, const PipelineShape& shape, int layers,
                                const std::vector<double>& slower = {}, int greeting = -1) {
    return *pipelineDraft(steps, shape, layers, slower, greeting).seal();
}

replay::TaskGraph pipelineStep(const PipelineShape& shape, int layers, const std::vector<double>& slower = {}) {
    return pipelineSteps(1, shape, layers, slower);
}

job::Analysis pipelineAnalysis(const PipelineShape& shape) {
    job::Analysis analysis = test::analysisOf(store::Op::send, facts::CommRole::pipeline);
    facts::Pipeline pipeline;
    for (int stage = 0; stage < shape.stages; ++stage) pipeline.stages.push_back(stage);
    pipeline.microBatches = shape.microBatches;
    pipeline.virtualStages = shape.virtualStages;
    pipeline.schedule = shape.schedule;
    analysis.layout.pipelines = {pipeline};
    return analysis;
}

TEST(StructuralEdits, MoreMicroBatchesShareOneBubble) {
    const PipelineShape two{"1f1b", 2, 2, 1};
    const replay::TaskGraph graph = pipelineStep(two, 2);
    // (M + P - 1) x 3 ms, and the optimizer.
    EXPECT_NEAR(test::stepMs(graph), 10, 1e-3);
    double tokens = 0;
    PipelineOrder to;
    to.microBatches = 4;
    EXPECT_NEAR(test::stepMsWith(*pipelineInOrder(to), graph, pipelineAnalysis(two), &tokens), 16, 1e-3);
    EXPECT_DOUBLE_EQ(tokens, 2);
    to.microBatches = 1;
    EXPECT_NEAR(test::stepMsWith(*pipelineInOrder(to), graph, pipelineAnalysis(two), &tokens), 7, 1e-3);
    EXPECT_DOUBLE_EQ(tokens, 0.5);
}

TEST(StructuralEdits, FewStepsOfManyMicroBatchesStandForAll) {
    constexpr int kRecorded = 6;
    const PipelineShape two{"1f1b", 2, 2, 1};
    job::Analysis analysis = pipelineAnalysis(two);
    const replay::TaskGraph graph = pipelineSteps(kRecorded, two, 2);
    for (int step = 0; step < kRecorded; ++step) analysis.replay.steps.push_back(step);
    analysis.replay.graph = graph;
    analysis.replay.playUnchanged();
    const TrialJob unchanged(analysis);
    for (int factor : {1, 2, 3, 8}) {
        const ChangedJob changed =
            unchanged.with(parseEdits({"micro-batches:count=" + std::to_string(2 * factor)}), Outlook::expected);
        ASSERT_EQ(changed.stepsNs.size(), size_t{kRecorded});
        // (M + P - 1) x 3 ms and the optimizer, at the tokens of two micro-batches.
        const double expectedMs = ((2 * factor + 1) * 3 + 1) / static_cast<double>(factor);
        EXPECT_NEAR(facts::median(changed.stepsNs) / test::kMs, expectedMs, 0.05) << factor;
        EXPECT_EQ(changed.effect.played.has_value(), factor > 1);
        EXPECT_LT(changed.graph.size(), std::max(1.1, 1.1 * factor / kRecorded) * static_cast<double>(graph.size()));
        // A change on top is one of all steps as well.
        const TrialJob more(
            unchanged.with(parseEdits({"micro-batches:count=" + std::to_string(2 * factor)}), Outlook::expected),
            analysis);
        const ChangedJob twice =
            more.with(parseEdits({"micro-batches:count=" + std::to_string(4 * factor)}), Outlook::expected);
        EXPECT_NEAR(facts::median(twice.stepsNs) / test::kMs, ((4 * factor + 1) * 3 + 1) / (2.0 * factor), 0.05);
    }
}

/// What `change` makes of the median step of a job of so many steps. ms at equal tokens.
double changedMs(const replay::TaskGraph& graph, int steps, const PipelineShape& shape, const std::string& change,
                 Outlook outlook = Outlook::expected) {
    job::Analysis analysis = pipelineAnalysis(shape);
    for (int step = 0; step < steps; ++step) analysis.replay.steps.push_back(step);
    analysis.replay.graph = graph;
    analysis.replay.playUnchanged();
    return facts::median(TrialJob(analysis).with(parseEdits({change}), outlook).stepsNs) / test::kMs;
}

TEST(StructuralEdits, SmallerMicroBatchesOfTheSameBatchAddTheirGradientsAsOften) {
    constexpr double kAddMs = 0.2;
    for (const int before : {2, 3, 4}) {
        const PipelineShape shape{"1f1b", 2, before, 1};
        const replay::TaskGraph graph = *pipelineDraft(2, shape, 2, {}, -1, kAddMs).seal();
        for (const int times : {2, 3}) {
            // Passes of 3 / times ms; the last stage does all additions, the first one the last of them once more.
            const double passMs = 3.0 / times;
            const double expectedMs = (times * before + 1) * passMs + times * before * kAddMs + 1;
            const std::string change = fmt::format("micro-batches:count={},batch=kept", times * before);
            for (Outlook outlook : {Outlook::expected, Outlook::cheap})
                EXPECT_NEAR(changedMs(graph, 2, shape, change, outlook), expectedMs, 0.06) << before << " " << times;
            // Of two the first stage adds at the end of its last pass: nothing tells that from what follows it.
            const double dearMs = changedMs(graph, 2, shape, change, Outlook::dear);
            if (before > 2) {
                EXPECT_NEAR(dearMs, expectedMs, 0.06);
            } else {
                EXPECT_GT(dearMs, expectedMs);
            }
        }
    }
}

TEST(StructuralEdits, AdditionsThatAreNotToBeSeenAreLeftOpen) {
    const PipelineShape two{"1f1b", 2, 2, 1};
    const replay::TaskGraph graph = pipelineSteps(2, two, 2);
    const std::string change = "micro-batches:count=4,batch=kept";
    EXPECT_NEAR(changedMs(graph, 2, two, change), 5 * 1.5 + 1, 0.06);
    // As long as the optimizer at worst, of which half is part of the recorded passes.
    EXPECT_NEAR(changedMs(graph, 2, two, change, Outlook::dear), 5 * (1.5 + 0.5) + 1, 0.06);
    EditEffect effect;
    replay::TaskGraph changed = graph;
    parseEdit(change)->apply(changed, pipelineAnalysis(two), effect);
    EXPECT_TRUE(effect.open);
    EXPECT_DOUBLE_EQ(effect.tokens, 1);
    EXPECT_TRUE(std::ranges::any_of(effect.assumed, [](const std::string& sentence) {
        return sentence.find("not to be seen") != std::string::npos;
    }));
}

TEST(StructuralEdits, MessagesOfInterleavedStagesMeetHoweverTheyAreGrouped) {
    for (const int stages : {2, 3, 4})
        for (const int rounds : {1, 2, 3})
            for (const int chunks : {2, 3})
                for (const bool passByPass : {false, true}) {
                    const PipelineShape shape{"interleaved", stages, stages * rounds, chunks, passByPass};
                    std::map<std::tuple<bool, int, int>, std::pair<int, int>> sides;  // sent and received
                    for (int stage = 0; stage < stages; ++stage)
                        for (const PlannedRun& run : planStage(shape, stage))
                            for (const PipelineMessage& message : run.messages) {
                                auto& [sent, received] = sides[{message.activation, message.micro, message.place}];
                                ++(message.send ? sent : received);
                                EXPECT_EQ(message.place % stages == stage, message.send);
                            }
                    EXPECT_EQ(sides.size(), size_t(2 * stages * rounds * (stages * chunks - 1)));
                    for (const auto& [message, both] : sides) EXPECT_EQ(both, std::pair(1, 1));
                }
}

TEST(StructuralEdits, PassByPassInterleavedStagesWaitForLess) {
    for (const int microBatches : {4, 8, 12}) {
        const PipelineShape four{"1f1b", 4, microBatches, 1};
        const replay::TaskGraph graph = pipelineSteps(3, four, 8);
        const std::string change = "schedule:name=interleaved,virtual=2";
        const double together = changedMs(graph, 3, four, change),
                     apart = changedMs(graph, 3, four, change, Outlook::cheap);
        // No schedule is shorter than what a stage computes, and one forward and backward pass through the others.
        EXPECT_GE(apart, 3.0 * (microBatches + 3 / 2.0) + 1 - 0.06);
        EXPECT_LE(apart, together + 0.06) << microBatches;
    }
}

TEST(StructuralEdits, AStepWithMessagesBesideTheScheduleIsLeftOut) {
    constexpr int kRecorded = 4;
    const PipelineShape two{"1f1b", 2, 2, 1};
    const std::vector<double> slower{1.5, 1};  // the first of 3 and 1 layers: to be made even
    for (int greeting : {0, kRecorded - 1}) {
        const replay::TaskGraph even = pipelineSteps(kRecorded, two, 2, {}, greeting);
        EXPECT_NEAR(changedMs(even, kRecorded, two, "micro-batches:count=4"), 16 / 2.0, 0.05) << greeting;
        // The step left out stays uneven, and its stages end as far apart as before: 0.3 ms of a step here.
        const replay::TaskGraph uneven = pipelineSteps(kRecorded, two, 2, slower, greeting);
        const double allMs = changedMs(pipelineSteps(kRecorded, two, 2, slower), kRecorded, two, "layers:parts=yes");
        EXPECT_NEAR(changedMs(uneven, kRecorded, two, "layers:parts=yes"), allMs, 0.35) << greeting;
    }
    EXPECT_THROW(changedMs(pipelineSteps(1, two, 2, {}, 0), 1, two, "micro-batches:count=4"), EditError);
}

TEST(StructuralEdits, StepsOnBothSidesOfOneThatARankHasNoMarkOfAreNotInARow) {
    constexpr int kRecorded = 5, kBetween = 3;  // three steps before it, and one behind that would be a fourth
    const PipelineShape two{"1f1b", 2, 2, 1};
    for (const int greeting : {-1, kBetween}) {  // the messages of the step between are those of the schedule, or not
        job::Analysis analysis = pipelineAnalysis(two);
        analysis.replay.graph = pipelineSteps(kRecorded, two, 2, {1.5, 1}, greeting);
        std::erase_if(analysis.replay.graph.marks,
                      [](const replay::StepMark& mark) { return mark.rank == 0 && mark.step == kBetween; });
        for (int step = 0; step < kBetween; ++step) analysis.replay.steps.push_back(step);
        analysis.replay.playUnchanged();
        const ChangedJob changed = TrialJob(analysis).with(parseEdits({"layers:parts=yes"}), Outlook::expected);
        ASSERT_TRUE(changed.effect.played);
        EXPECT_EQ(changed.effect.played->steps, (std::vector<int>{0, 1, 2})) << greeting;
    }
}

TEST(StructuralEdits, StepsThatTheDeviceAloneTellsArePlayedWithMoreMicroBatches) {
    constexpr int kRecorded = 4;
    const PipelineShape two{"1f1b", 2, 2, 1};
    replay::GraphDraft draft = pipelineDraft(kRecorded, two, 2);
    const auto kindOf = [&](replay::TaskId task) { return draft.info(task).kind; };
    draft.removeEdges([&](replay::TaskId to, const replay::Edge& edge) {
        return kindOf(to) == replay::TaskKind::stepMark && kindOf(edge.from) == replay::TaskKind::host;
    });
    for (replay::TaskId task = 0; task < draft.size(); ++task)
        if (kindOf(task) == replay::TaskKind::host) draft.info(task).step = -1;
    EXPECT_NEAR(changedMs(*std::move(draft).seal(), kRecorded, two, "micro-batches:count=4"), 16 / 2.0, 0.05);
}

TEST(StructuralEdits, AStepUnlikeTheOthersStandsForNone) {
    const PipelineShape two{"1f1b", 2, 2, 1};
    job::Analysis analysis = pipelineAnalysis(two);
    analysis.replay.graph = pipelineSteps(6, two, 2);
    // The optimizer of the last step takes 100 ms longer.
    for (replay::TaskId task = 0; task < analysis.replay.graph.size(); ++task)
        if (const auto& info = analysis.replay.graph.info[task];
            info.kind == replay::TaskKind::kernel && info.detail == 9 && info.step == 5)
            analysis.replay.graph.durationNs[task] += 100 * test::kMs;
    for (int step = 0; step < 6; ++step) analysis.replay.steps.push_back(step);
    analysis.replay.playUnchanged();
    const TrialJob unchanged(analysis);
    const ChangedJob changed = unchanged.with(parseEdits({"micro-batches:count=16"}), Outlook::expected);
    ASSERT_TRUE(changed.effect.played);
    EXPECT_LT(changed.effect.played->steps.back(), 5);
    EXPECT_NEAR(facts::median(changed.stepsNs) / test::kMs, (17 * 3 + 1) / 8.0, 0.05);
    // Played once more as it is, it takes what it took.
    const std::vector<double> again =
        stepsNs(analysis, changed.graph, replay::simulate(changed.graph), changed.effect, changed.stepsNs);
    ASSERT_EQ(again.size(), changed.stepsNs.size());
    for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i], changed.stepsNs[i], 1);
}

TEST(StructuralEdits, APipelineIsReadOnceForAllThatChangesItsTimes) {
    const PipelineShape two{"1f1b", 2, 2, 1};
    const job::Analysis analysis = pipelineAnalysis(two);
    const replay::TaskGraph graph = pipelineSteps(3, two, 2);
    const TrialGraph recorded(graph, analysis);
    replay::TaskGraph slower = graph;
    for (int64_t& ns : slower.durationNs) ns *= 2;
    EXPECT_EQ(TrialGraph(slower, analysis, Tried::once, &recorded).pipeline(), recorded.pipeline());
    EXPECT_NE(TrialGraph(slower, analysis, Tried::once).pipeline(), recorded.pipeline());
    replay::TaskGraph other = slower;
    removeEdges(other, [](replay::TaskId, const replay::Edge& edge) { return edge.kind == replay::WaitKind::event; });
    EXPECT_NE(TrialGraph(other, analysis, Tried::once, &recorded).pipeline(), recorded.pipeline());
}

/// Where forward passes take no time, nothing tells where they end: a pipeline is read before its times have changed,
/// also of a job that was held meanwhile.
TEST(StructuralEdits, HowAChangedJobWasComeToDoesNotMatter) {
    const PipelineShape four{"1f1b", 4, 8, 1};
    job::Analysis analysis = pipelineAnalysis(four);
    analysis.replay.graph = pipelineSteps(4, four, 8);
    analysis.replay.steps = {0, 1, 2, 3};
    analysis.replay.playUnchanged();
    const auto noForward = [] {
        return std::make_unique<Edit>(GraphChange([](replay::TaskGraph& graph, const auto&, auto&) {
            for (replay::TaskId task = 0; task < graph.size(); ++task)
                if (graph.info[task].kind == replay::TaskKind::kernel && graph.info[task].detail < 2)
                    graph.durationNs[task] = 0;
        }));
    };
    std::vector<std::map<Pass, Calls>> seen;
    const auto look = [&seen] {
        return std::make_unique<Edit>(NewGraph([&seen](const TrialGraph& of, EditEffect&) {
            const auto parts = of.pipeline();
            seen.push_back(parts->step(3, parts->steps().front()).passes);  // the last stage: no message between
            return of.graph();
        }));
    };
    const auto edits = [](auto... each) {
        Edits all;
        (all.push_back(std::move(each)), ...);
        return all;
    };
    const auto more = [] { return parseEdit("micro-batches:count=12"); };
    const auto recorded = std::make_shared<const TrialJob>(analysis);
    const auto held = [&](std::shared_ptr<const TrialJob> of, Edits by) {
        return std::make_shared<const TrialJob>(of->with(by, Outlook::expected), analysis, of);
    };
    recorded->with(edits(noForward(), look()), Outlook::expected);
    held(recorded, edits(noForward()))->with(edits(look()), Outlook::expected);
    held(held(recorded, edits(noForward())), edits(noForward()))->with(edits(look()), Outlook::expected);
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_FALSE((seen[0].at({StepPart::forward, 0, 5}).empty()));
    EXPECT_EQ(seen[1], seen[0]);
    EXPECT_EQ(seen[2], seen[0]);
    seen.clear();
    recorded->with(edits(more(), noForward(), look()), Outlook::expected);
    held(recorded, edits(more(), noForward()))->with(edits(look()), Outlook::expected);
    held(held(recorded, edits(more())), edits(noForward()))->with(edits(look()), Outlook::expected);
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[1], seen[0]);
    EXPECT_EQ(seen[2], seen[0]);
}

TEST(StructuralEdits, APipelineReadBeforeItsTimesChangedIsMadeAnewAsOneReadAfterwards) {
    const PipelineShape four{"1f1b", 4, 8, 1};
    job::Analysis analysis = pipelineAnalysis(four);
    analysis.replay.graph = pipelineSteps(4, four, 8);
    analysis.replay.steps = {0, 1, 2, 3};
    analysis.replay.playUnchanged();
    Edits edits = parseEdits({"micro-batches:count=16"});
    edits.insert(edits.begin(), std::make_unique<Edit>(GraphChange([](replay::TaskGraph& graph, const auto&, auto&) {
                     for (replay::TaskId task = 0; task < graph.size(); ++task)
                         if (graph.rankOf(task) == 1) graph.durationNs[task] *= 2;
                 })));
    ChangedJob each = unchangedJob(analysis);
    for (const auto& edit : edits) change(each, *edit, analysis);
    EXPECT_EQ(TrialJob(analysis).with(edits, Outlook::expected).stepsNs, each.stepsNs);
    EXPECT_NE(TrialJob(analysis).with(parseEdits({"micro-batches:count=16"}), Outlook::expected).stepsNs, each.stepsNs);
}

TEST(StructuralEdits, AScheduleIsPlayedAsIfItHadBeenRecorded) {
    for (const PipelineShape& from :
         {PipelineShape{"1f1b", 4, 8, 1}, PipelineShape{"gpipe", 4, 8, 1}, PipelineShape{"interleaved", 4, 8, 2}})
        for (const PipelineShape& wanted :
             {PipelineShape{"1f1b", 4, 4, 1}, PipelineShape{"gpipe", 4, 12, 1}, PipelineShape{"interleaved", 4, 8, 2},
              PipelineShape{"interleaved", 4, 16, 4}}) {
            PipelineOrder to{wanted.microBatches, wanted.virtualStages, wanted.schedule};
            EXPECT_NEAR(test::stepMsWith(*pipelineInOrder(to), pipelineStep(from, 8), pipelineAnalysis(from)),
                        test::stepMs(pipelineStep(wanted, 8)), 1e-3)
                << from.schedule << " to " << wanted.schedule << " with " << wanted.microBatches;
        }
}

TEST(StructuralEdits, PipelinesAreChangedAgain) {
    const PipelineShape from{"gpipe", 4, 8, 1};
    const job::Analysis analysis = pipelineAnalysis(from);
    const replay::TaskGraph graph = pipelineStep(from, 8);
    EXPECT_NEAR(test::stepMsAfter({"micro-batches:count=16", "schedule:name=1f1b"}, graph, analysis),
                test::stepMs(pipelineStep({"1f1b", 4, 16, 1}, 8)), 1e-3);
    EXPECT_NEAR(test::stepMsAfter({"schedule:name=interleaved,virtual=2", "micro-batches:count=16"}, graph, analysis),
                test::stepMs(pipelineStep({"interleaved", 4, 16, 2}, 8)), 1e-3);
    EXPECT_NEAR(test::stepMsAfter({"micro-batches:count=16", "micro-batches:count=4"}, graph, analysis),
                test::stepMs(pipelineStep({"gpipe", 4, 4, 1}, 8)), 1e-3);
    const std::vector<double> slower{1, 1, 1, 1.5};
    EXPECT_NEAR(
        test::stepMsAfter({"micro-batches:count=16", "layers:parts=yes"}, pipelineStep(from, 8, slower), analysis),
        test::stepMsAfter({"layers:parts=yes", "micro-batches:count=16"}, pipelineStep(from, 8, slower), analysis),
        1e-2);
    EXPECT_THROW(test::stepMsAfter({"micro-batches:count=6", "schedule:name=interleaved,virtual=2"}, graph, analysis),
                 EditError);  // no multiple of the stages any more
}

TEST(StructuralEdits, ImpossiblePipelinesAreRefused) {
    const PipelineShape shape{"1f1b", 4, 8, 1};
    const replay::TaskGraph graph = pipelineStep(shape, 2);
    const job::Analysis analysis = pipelineAnalysis(shape);
    EXPECT_THROW(test::stepMsWith(*pipelineInOrder({6, 2, "interleaved"}), graph, analysis),
                 EditError);  // not a multiple of the stages
    EXPECT_THROW(test::stepMsWith(*pipelineInOrder({8, 4, "interleaved"}), graph, analysis),
                 EditError);  // two layers for four chunks
    EXPECT_THROW(test::stepMsWith(*pipelineInOrder({8, 2, "1f1b"}), graph, analysis), EditError);
    job::Analysis other = analysis;
    other.layout.pipelines.front().microBatches = 4;
    EXPECT_THROW(test::stepMsWith(*pipelineInOrder({16, 1, "1f1b"}), graph, other),
                 EditError);  // the messages say otherwise
    EXPECT_THROW(test::stepMsWith(*pipelineInOrder({16, 1, "1f1b"}), test::ddpStep(false),
                                  test::analysisOf(store::Op::allReduce, facts::CommRole::gradients)),
                 EditError);
}

TEST(StructuralEdits, LayersMoveToTheLighterStage) {
    const PipelineShape shape{"1f1b", 2, 2, 1};
    const replay::TaskGraph graph = pipelineStep(shape, 4, {1, 2});
    const job::Analysis analysis = pipelineAnalysis(shape);
    // The second stage ends its backward passes at 7 and 13, the first at 15.
    EXPECT_NEAR(test::stepMs(graph), 16, 1e-3);
    // One of its four layers moves: 4.5 ms a micro-batch on both, 3 x 4.5, and an optimizer of 1.5 ms.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("layers"), graph, analysis), 15, 1e-3);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("layers:from=1,to=0,count=1"), graph, analysis), 15, 1e-3);
    EXPECT_THROW(test::stepMsWith(*parseEdit("layers:from=1,to=0,count=4"), graph, analysis), EditError);
    EXPECT_THROW(test::stepMsWith(*parseEdit("layers:from=1,to=2,count=1"), graph, analysis), EditError);
    EXPECT_THROW(test::stepMsWith(*parseEdit("layers"), pipelineStep(shape, 4), analysis),
                 EditError);  // even already
    // One of two layers is too much to move; a part of one makes 3.45 ms a micro-batch on both, and an optimizer
    // of 1.15 ms.
    EXPECT_THROW(test::stepMsWith(*parseEdit("layers"), pipelineStep(shape, 2, {1, 1.3}), analysis), EditError);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("layers:parts=yes"), pipelineStep(shape, 2, {1, 1.3}), analysis), 11.5,
                1e-3);
}

TEST(StructuralEdits, LayersMoveAgainFromWhereTheyAre) {
    const PipelineShape shape{"1f1b", 2, 2, 1};
    const replay::TaskGraph graph = pipelineStep(shape, 4, {1, 2});
    const job::Analysis analysis = pipelineAnalysis(shape);
    const double recorded = test::stepMs(graph);
    // There and back.
    EXPECT_NEAR(test::stepMsAfter({"layers:from=0,to=1", "layers:from=1,to=0"}, graph, analysis), recorded, 1e-4);
    EXPECT_NEAR(test::stepMsAfter({"layers:from=1,to=0,count=3", "layers:from=0,to=1,count=2", "layers:from=0,to=1"},
                                  graph, analysis),
                recorded, 1e-4);
    // Two at once, or one after the other; and the balance counts from there.
    EXPECT_NEAR(test::stepMsAfter({"layers:from=1,to=0", "layers:from=1,to=0"}, graph, analysis),
                test::stepMsAfter({"layers:from=1,to=0,count=2"}, graph, analysis), 1e-4);
    EXPECT_NEAR(test::stepMsAfter({"layers:from=0,to=1", "layers"}, graph, analysis), 15, 1e-3);
    // Four and one make five: stage 1 can give four.
    EXPECT_NO_THROW(test::stepMsAfter({"layers:from=0,to=1", "layers:from=1,to=0,count=4"}, graph, analysis));
    EXPECT_THROW(test::stepMsAfter({"layers:from=1,to=0", "layers:from=1,to=0,count=3"}, graph, analysis), EditError);
    EXPECT_THROW(test::stepMsAfter({"layers:parts=yes", "layers:from=1,to=0"}, graph, analysis),
                 EditError);  // no whole ones any more
}

}  // namespace
}  // namespace rankscope::edits
