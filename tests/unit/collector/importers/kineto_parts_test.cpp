// SPDX-License-Identifier: Apache-2.0
// Files that somebody merged from those of several ranks.
#include "collector/importers/kineto_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/importers/kineto_file.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

std::vector<FileRank> readMerged(const std::string& events) {
    const tests::TraceFolder folder;
    std::vector<FileRank> ranks;
    readKinetoFile(folder.write("merged.json", R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" +
                                                   events + "]}"),
                   {}, [&](FileRank rank) { ranks.push_back(std::move(rank)); });
    return ranks;
}

/// A call and the kernel that it launched; pids as they stand in the file.
std::string launchAndKernel(const std::string& process, const std::string& devicePid, int device, const char* launchTs,
                            const char* kernelTs, int correlation, const char* name) {
    const std::string number = std::to_string(correlation);
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": )" + process +
           R"(, "tid": 5, "ts": )" + launchTs + R"(, "dur": 2, "args": {"correlation": )" + number +
           R"(}}, {"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": )" + devicePid +
           R"(, "tid": 7, "ts": )" + kernelTs + R"(, "dur": 3, "args": {"device": )" + std::to_string(device) +
           R"(, "stream": 7, "correlation": )" + number + "}}";
}

TEST(KinetoParts, LabelsAreWhatScriptsPutInFront) {
    EXPECT_EQ(mergeLabel("[R0] python"), "R0");
    EXPECT_EQ(mergeLabel("[TP00-DP01] 4711"), "TP00-DP01");
    EXPECT_EQ(mergeLabel("Rank 12: python"), "Rank 12");
    EXPECT_EQ(mergeLabel("rank_3"), "rank_3");
    for (const char* none : {"python", "[unknown] 5", "[R0", "ranks", "rank", "", "[]", "4711", "Spans"})
        EXPECT_EQ(mergeLabel(none), "") << none;
}

TEST(KinetoParts, ProcessNumbersWithLabelsTellRanks) {
    // As SGLang's ProfileMerger writes: every rank computes on its device 0, and numbers of calls repeat.
    const auto ranks = readMerged(launchAndKernel("\"[TP01] 11\"", "\"[TP01] 0\"", 0, "1", "5", 3, "one") + "," +
                                  launchAndKernel("\"[TP00] 10\"", "\"[TP00] 0\"", 0, "1", "9", 3, "zero") +
                                  R"(,{"ph": "X", "cat": "user_annotation", "name": "lost", "pid": 3, "ts": 1})");
    ASSERT_EQ(ranks.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(ranks[i].header.rank, static_cast<int64_t>(i));
        EXPECT_EQ(ranks[i].header.worldSize, 2);
        const RankRecording& recording = ranks[i].recording;
        ASSERT_EQ(recording.kernels.size(), 1u);
        EXPECT_EQ(recording.strings[recording.kernels[0].nameId], i == 0 ? "zero" : "one");
        ASSERT_EQ(recording.apiCalls.size(), 1u);
        EXPECT_EQ(recording.process.pid, static_cast<int64_t>(10 + i));
    }
    ASSERT_EQ(ranks[0].losses.all().size(), 1u);
    EXPECT_NE(ranks[0].losses.all()[0].message.find("of which nothing tells the rank"), std::string::npos);
    EXPECT_TRUE(ranks[1].losses.all().empty()) << "losses of a file are told once";
}

TEST(KinetoParts, LabelsOfSeveralNumbersOrderRanksAndTellNone) {
    const auto ranks = readMerged(launchAndKernel("\"[TP01-PP00] 1\"", "\"[TP01-PP00] 0\"", 0, "1", "5", 3, "a") + "," +
                                  launchAndKernel("\"[TP00-PP01] 2\"", "\"[TP00-PP01] 0\"", 0, "1", "5", 3, "b"));
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].recording.process.pid, 2);
    EXPECT_FALSE(ranks[0].header.rank);
    EXPECT_FALSE(ranks[1].header.rank);
}

TEST(KinetoParts, NamesOfProcessesWithLabelsTellRanks) {
    std::string names;
    for (const char* process : {"100", "1000"})  // the process and the device of rank 4, then of rank 6
        names += R"(,{"ph": "M", "name": "process_name", "pid": )" + std::string(process) +
                 R"(, "args": {"name": "[R4] python"}},{"ph": "M", "name": "process_labels", "pid": )" + process +
                 R"(1, "args": {"labels": "[R6] GPU 0"}})";
    const auto ranks = readMerged(launchAndKernel("1001", "10001", 0, "1", "5", 3, "a") + "," +
                                  launchAndKernel("100", "1000", 0, "2", "6", 3, "b") + names);
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].header.rank, 4);
    EXPECT_EQ(ranks[0].recording.kernels.at(0).startNs, 6000);
    EXPECT_EQ(ranks[1].header.rank, 6);
    EXPECT_EQ(ranks[1].recording.kernels.at(0).startNs, 5000);
}

TEST(KinetoParts, FilesThatWereOnlyPutTogetherAreSplitByWhoLaunchedWhat) {
    // Both processes number their calls alike; what ran before a call was not launched by it.
    const auto ranks = readMerged(launchAndKernel("20", "1", 1, "1", "5", 3, "on 1") + "," +
                                  launchAndKernel("30", "0", 0, "11", "15", 3, "on 0") + "," +
                                  launchAndKernel("20", "1", 1, "21", "25", 4, "on 1") + "," +
                                  launchAndKernel("30", "0", 0, "31", "35", 4, "on 0"));
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].recording.process.pid, 30);
    EXPECT_EQ(ranks[1].recording.process.pid, 20);
    for (const FileRank& rank : ranks) {
        EXPECT_FALSE(rank.header.rank);
        EXPECT_EQ(rank.recording.kernels.size(), 2u);
        EXPECT_EQ(rank.recording.apiCalls.size(), 2u);
    }
}

TEST(KinetoParts, OneProcessOnTwoDevicesIsOneRank) {
    EXPECT_EQ(readMerged(launchAndKernel("20", "1", 1, "1", "5", 3, "a") + "," +
                         launchAndKernel("20", "0", 0, "11", "15", 4, "b"))
                  .size(),
              1u);
    // A second process that calls CUDA and launches nothing makes no rank either.
    EXPECT_EQ(readMerged(launchAndKernel("20", "1", 1, "1", "5", 3, "a") + "," +
                         launchAndKernel("20", "0", 0, "11", "15", 4, "b") +
                         R"(,{"ph": "X", "cat": "cuda_runtime", "name": "cudaGetDevice", "pid": 30, "tid": 5, "ts": 1,
                            "dur": 2, "args": {"correlation": 9}})")
                  .size(),
              1u);
}

}  // namespace
}  // namespace rankscope::collector
