// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "reference/workloads/schedule.h"

namespace rankscope::reference {
namespace {

using Type = PipelineAction::Type;

std::string textOf(const std::vector<PipelineAction>& actions) {
    std::string text;
    for (const PipelineAction& action : actions) {
        if (action.type == Type::forward) text += "F" + std::to_string(action.micro) + " ";
        if (action.type == Type::backward) text += "B" + std::to_string(action.micro) + " ";
    }
    return text;
}

TEST(Schedule, GpipeRunsAllForwardsFirst) { EXPECT_EQ(textOf(planPipeline(Schedule::gpipe, 2, 0, 3)), "F0 F1 F2 B0 B1 B2 "); }

TEST(Schedule, OneForwardOneBackwardWarmsUpByTheStagesBehindIt) {
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 0, 6)), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 ");
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 3, 6)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 ");
}

TEST(Schedule, FewerMicroBatchesThanStagesStillRunEachOnce) {
    EXPECT_EQ(textOf(planPipeline(Schedule::oneForwardOneBackward, 4, 0, 2)), "F0 F1 B0 B1 ");
}

/// Plays all stages against each other: a transfer completes only together with its neighbours' matching halves, as NCCL's do.
void expectCompletes(Schedule schedule, int stages, int microBatches) {
    SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(microBatches) + " micro-batches");
    std::vector<std::vector<PipelineAction>> plans;
    for (int stage = 0; stage < stages; ++stage) plans.push_back(planPipeline(schedule, stages, stage, microBatches));
    std::vector<size_t> next(stages, 0);
    std::vector<std::vector<bool>> haveActivation(stages, std::vector<bool>(microBatches)), haveGradient = haveActivation;
    const auto current = [&](int stage) -> PipelineAction* { return next[stage] < plans[stage].size() ? &plans[stage][next[stage]] : nullptr; };
    for (bool progress = true; progress;) {
        progress = false;
        for (int stage = 0; stage < stages; ++stage) {
            PipelineAction* action = current(stage);
            if (!action) continue;
            if (action->type == Type::forward) {
                ASSERT_TRUE(stage == 0 || haveActivation[stage][action->micro]) << "stage " << stage << " computes what it has not received";
            } else if (action->type == Type::backward) {
                ASSERT_TRUE(stage == stages - 1 || haveGradient[stage][action->micro]) << "stage " << stage;
            }
            if (action->type != Type::transfer) {
                ++next[stage];
                progress = true;
                continue;
            }
            // Halves are matched one by one; the call is over when none is left.
            Transfer& transfer = action->transfer;
            PipelineAction* following = stage + 1 < stages ? current(stage + 1) : nullptr;
            if (following && following->type == Type::transfer) {
                if (transfer.sendActivation && following->transfer.receiveActivation) {
                    ASSERT_EQ(*transfer.sendActivation, *following->transfer.receiveActivation);
                    haveActivation[stage + 1][*transfer.sendActivation] = true;
                    transfer.sendActivation = following->transfer.receiveActivation = std::nullopt;
                    progress = true;
                }
                if (transfer.receiveGradient && following->transfer.sendGradient) {
                    ASSERT_EQ(*transfer.receiveGradient, *following->transfer.sendGradient);
                    haveGradient[stage][*transfer.receiveGradient] = true;
                    transfer.receiveGradient = following->transfer.sendGradient = std::nullopt;
                    progress = true;
                }
            }
            if (!transfer.sends() && !transfer.receives()) {
                ++next[stage];
                progress = true;
            }
        }
    }
    for (int stage = 0; stage < stages; ++stage) EXPECT_EQ(next[stage], plans[stage].size()) << "stage " << stage << " waits for ever";
}

TEST(Schedule, EverySendMeetsItsReceiveWithoutDeadlock) {
    for (const Schedule schedule : {Schedule::gpipe, Schedule::oneForwardOneBackward})
        for (const auto& [stages, microBatches] : {std::pair(2, 1), std::pair(2, 5), std::pair(3, 2), std::pair(4, 4), std::pair(4, 9), std::pair(8, 8)})
            expectCompletes(schedule, stages, microBatches);
}

}  // namespace
}  // namespace rankscope::reference
