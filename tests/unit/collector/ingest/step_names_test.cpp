// SPDX-License-Identifier: Apache-2.0
// Which ranges say by their names that they are steps.
#include "collector/ingest/step_names.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

TEST(StepNames, AreWordsOfTheirOwn) {
    EXPECT_EQ(stepNameOf("ProfilerStep"), StepName::profilerStep);
    for (const char* name : {"step", "train_step", "trainStep", "trainstep", "Steps", "STEP", "iteration", "iter_",
                             "train iter", "trainIter", "Iterations", "iters"})
        EXPECT_EQ(stepNameOf(name), StepName::saysStep) << name;
}

TEST(StepNames, ThatOnlyHoldTheLettersAreNone) {
    for (const char* name :
         {"criterion", "SummaryWriter.flush", "stepping_stone", "literal", "arbiter", "forward", "Optimizer.step",
          "lr_scheduler.step", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"})
        EXPECT_EQ(stepNameOf(name), StepName::other) << name;
}

}  // namespace
}  // namespace rankscope::collector
