// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/facts/rank_events.h"
#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob feeding(double ns) {
    test::HostedJob job;
    job.ranks = 4;
    job.inputNs = ns;
    return job;
}

TEST(InputStall, AHostAwayFromCudaAtTheStartOfTheStepIsFound) {
    const report::Report report = test::playHosted(feeding(10e6)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS403[0 1 2 3]");
    const double measured = report.run.stepNs - test::playHosted(feeding(0)).analyze().run.stepNs;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
}

TEST(InputStall, ARangeThatNamesDataIsQuoted) {
    test::HostedJob job = feeding(10e6);
    job.inputInRange = true;
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS403[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("next_batch"), std::string::npos) << report.findings[0].cause;
}

TEST(InputStall, ALoaderThatIsLateNowAndThenIsFound) {
    test::HostedJob job = feeding(20e3);
    job.inputInRange = true;
    for (int step : {2, 4, 5, 7, 10}) job.lateInputs[step] = 120e6;
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS403[0 1 2 3]");
    const job::Finding& finding = report.findings[0];
    EXPECT_EQ(finding.steps, (std::vector<int>{2, 4, 5, 7, 10}));
    EXPECT_NEAR(finding.worthNs(), 5 * 120e6 / 11, 0.1 * 5 * 120e6 / 11) << "the mean over 11 analysed steps";
    EXPECT_NE(finding.cause.find("in 5 of 11 steps"), std::string::npos) << finding.cause;
}

TEST(InputStall, OfOneRankIsThatRanks) {
    test::HostedJob job = feeding(10e6);
    job.troubled = {3};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS403[3]");
}

TEST(InputStall, ABatchInTimeIsNone) {
    EXPECT_EQ(test::foundIn(test::playHosted(feeding(50e3)).analyze()), "");
}

TEST(InputStall, JustUnderTheFloorIsANote) {
    const report::Report report = test::playHosted(feeding(1.9e6)).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS403");
}

TEST(RangeNames, TellDataLoadingFromWhatSoundsLikeIt) {
    for (const char* name : {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data", "Data Loading",
                             "next_batch", "load_input", "get batch", "dataloader", "data_time"})
        EXPECT_TRUE(facts::namesDataLoading(name)) << name;
    for (const char* name : {"DistributedDataParallel.forward", "BatchNorm2d", "input_grad", "forward",
                             "nccl:all_reduce", "Optimizer.step#Adam.step", "ProfilerStep#3", ""})
        EXPECT_FALSE(facts::namesDataLoading(name)) << name;
}

}  // namespace
}  // namespace rankscope::diagnose
