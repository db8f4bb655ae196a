// SPDX-License-Identifier: Apache-2.0
#include "injector/config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/injector/table_environment.h"

using namespace rankscope::injector;

namespace {

Config configOf(std::map<std::string, std::string> environment) {
    test::g_environment = std::move(environment);
    return readConfig(test::fromTable);
}

}  // namespace

TEST(Config, WithoutADirectoryNothingIsRecorded) {
    EXPECT_STREQ(configOf({}).directory, "");
}

TEST(Config, ARelativeDirectoryIsRefusedAndNamed) {
    const Config config = configOf({{"RANKSCOPE_DIR", "run/capture"}});
    EXPECT_STREQ(config.directory, "");
    EXPECT_STREQ(config.problem, "RANKSCOPE_DIR");
}

TEST(Config, DefaultsAreAllSourcesTwoGigabytesAndTheWholeRun) {
    const Config config = configOf({{"RANKSCOPE_DIR", "/run/capture"}});
    EXPECT_STREQ(config.directory, "/run/capture");
    EXPECT_EQ(config.trace, traceAll);
    EXPECT_EQ(config.maxBytes, 2ull << 30);
    EXPECT_EQ(config.range, CaptureRange::none);
    EXPECT_EQ(config.durationNs, 0);
    EXPECT_FALSE(config.cuptiClock);
    EXPECT_STREQ(config.problem, "");
}

TEST(Config, SourcesAreAListAndUnknownOnesAreNamed) {
    EXPECT_EQ(configOf({{"RANKSCOPE_TRACE", "nccl,nvtx"}}).trace, traceNccl | traceNvtx);
    const Config config = configOf({{"RANKSCOPE_TRACE", "cuda,rocm"}});
    EXPECT_EQ(config.trace, static_cast<uint32_t>(traceCuda));
    EXPECT_STREQ(config.problem, "RANKSCOPE_TRACE");
}

TEST(Config, SecondsMayHaveAFraction) {
    const Config config = configOf({{"RANKSCOPE_DELAY_S", "2.5"}, {"RANKSCOPE_DURATION_S", "10"}});
    EXPECT_EQ(config.delayNs, 2'500'000'000);
    EXPECT_EQ(config.durationNs, 10'000'000'000);
    EXPECT_STREQ(configOf({{"RANKSCOPE_DELAY_S", "soon"}}).problem, "RANKSCOPE_DELAY_S");
}

TEST(Config, CaptureRanges) {
    EXPECT_EQ(configOf({{"RANKSCOPE_CAPTURE_RANGE", "cudaProfilerApi"}}).range, CaptureRange::cudaProfilerApi);
    const Config named = configOf({{"RANKSCOPE_CAPTURE_RANGE", "nvtx:train"}});
    EXPECT_EQ(named.range, CaptureRange::nvtxRange);
    EXPECT_STREQ(named.rangeName, "train");
    const Config steps = configOf({{"RANKSCOPE_CAPTURE_RANGE", "steps:3-12"}});
    EXPECT_EQ(steps.range, CaptureRange::steps);
    EXPECT_EQ(steps.firstStep, 3);
    EXPECT_EQ(steps.lastStep, 12);
    for (const char* wrong : {"steps:9-3", "steps:x-3", "steps:3", "nvtx:", "all"}) {
        const Config config = configOf({{"RANKSCOPE_CAPTURE_RANGE", wrong}});
        EXPECT_EQ(config.range, CaptureRange::none) << wrong;
        EXPECT_STREQ(config.problem, "RANKSCOPE_CAPTURE_RANGE") << wrong;
    }
}

TEST(Config, AnAbsurdSizeKeepsTheDefault) {
    for (const char* wrong : {"-1", "0", "2GiB", "99999999999999999999"})
        EXPECT_EQ(configOf({{"RANKSCOPE_MAX_BYTES", wrong}}).maxBytes, 2ull << 30) << wrong;
    EXPECT_EQ(configOf({{"RANKSCOPE_MAX_BYTES", "1000000"}}).maxBytes, 1000000u);
}
