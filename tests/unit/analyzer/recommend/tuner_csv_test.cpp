// SPDX-License-Identifier: Apache-2.0
// Tuner files as the command line reads them.
#include "analyzer/recommend/tuner_csv.h"

#include <gtest/gtest.h>

#include "tests/unit/injector/nccl_tuner/tuner_lines.h"

namespace rankscope::recommend {
namespace {

TEST(TunerCsv, RightLinesAreReadAndWrongOnesRefusedWithTheirLine) {
    for (const auto& [line, right] : test::kTunerLines) {
        const TunerFile file = parseTunerCsv(std::string("# heading\n\n") + line + "\n");
        EXPECT_EQ(file.rows.size(), right ? 1u : 0u) << line;
        EXPECT_EQ(file.problems.size(), right ? 0u : 1u) << line;
        if (!file.problems.empty()) {
            EXPECT_EQ(file.problems[0].line, 3) << line;
            EXPECT_FALSE(file.problems[0].what.empty() || file.problems[0].hint.empty()) << line;
        }
    }
}

TEST(TunerCsv, RowsThatOverlapAreRefused) {
    for (const auto& [first, second, overlap] : test::kTunerPairs) {
        const TunerFile file = parseTunerCsv(std::string(first) + "\n" + second);
        EXPECT_EQ(file.problems.size(), overlap ? 1u : 0u) << first << " and " << second;
        for (const TunerProblem& problem : file.problems)
            EXPECT_NE(problem.what.find("overlaps line 1"), std::string::npos);
    }
}

TEST(TunerCsv, EveryWrongLineIsToldWithAHint) {
    const TunerFile file = parseTunerCsv(
        "allreduce,0,1,ring,ll,-1,-1,-1\nAllGather,0,1,ring,ll,-1,-1,-1\nallgather,0,1,tree,ll,-1,-1,-1\nreduce,9,3,"
        "ring,ll,-1,-1,-1\n");
    ASSERT_EQ(file.problems.size(), 3u);
    EXPECT_EQ(file.problems[0].line, 2);
    EXPECT_EQ(file.problems[0].what, "unknown collective 'AllGather'");
    EXPECT_EQ(file.problems[0].hint, "write allgather");
    EXPECT_EQ(file.problems[1].what, "allgather with tree");
    EXPECT_EQ(file.problems[2].what, "min_bytes 9 is above max_bytes 3");
}

TEST(TunerCsv, AnEmptyFileIsRefused) {
    for (const char* text : {"", "\n\n", " \t\r\n"}) {
        const TunerFile file = parseTunerCsv(text);
        ASSERT_EQ(file.problems.size(), 1u) << text;
        EXPECT_EQ(file.problems[0].line, 0);
    }
}

TEST(TunerCsv, AHeadingWithoutRowsForcesNothing) {
    for (const char* text :
         {"# nothing\n", "\n# nothing",
          "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"}) {
        const TunerFile file = parseTunerCsv(text);
        EXPECT_TRUE(file.problems.empty()) << text;
        EXPECT_TRUE(file.rows.empty()) << text;
    }
}

TEST(TunerCsv, NoMoreRowsThanThePluginHolds) {
    std::string text;
    for (size_t i = 0; i < kMaxTunerRows + 2; ++i)
        text += "allreduce," + std::to_string(i) + "," + std::to_string(i) + ",ring,ll,-1,-1,-1\n";
    const TunerFile file = parseTunerCsv(text);
    EXPECT_EQ(file.rows.size(), kMaxTunerRows);
    EXPECT_EQ(file.problems.size(), 2u);
}

TEST(TunerCsv, WhatIsWrittenReadsBack) {
    std::string text;
    for (const auto& [line, right] : test::kTunerLines) {
        if (!right) continue;
        const TunerFile once = parseTunerCsv(line);
        const TunerFile again = parseTunerCsv(formatTunerCsv(once.rows));
        ASSERT_EQ(again.rows.size(), 1u) << line;
        EXPECT_EQ(formatTunerRow(again.rows[0]), formatTunerRow(once.rows[0])) << line;
    }
    EXPECT_EQ(formatTunerRow(parseTunerCsv("allreduce,-1,-1,ring,ll,-1,2,16,-1,1").rows.at(0)),
              "allreduce,0,-1,ring,ll,-1,2,16,-1,1");
}

}  // namespace
}  // namespace rankscope::recommend
