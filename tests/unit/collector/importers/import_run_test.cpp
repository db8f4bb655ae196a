// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/importers/rank_of_file.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;
using tests::kernelEvent;
using tests::launchEvent;
using tests::TraceFolder;

/// A rank whose all-reduces end at the same moments as the other ranks', and which arrives `early` microseconds before.
std::string rankTrace(const std::string& header, int early, int collectives = 4, const std::string& trailer = "") {
    std::string events = tests::annotationEvent("ProfilerStep#1", "1690000000000000", "10000");
    for (int i = 0; i < collectives; ++i) {
        const int64_t end = 1690000000001000 + i * 1000;
        events += "," + launchEvent(std::to_string(end - early - 100), i) + "," +
                  kernelEvent("ncclKernel_AllReduce_RING_LL_Sum_float(x)", std::to_string(end - early),
                              std::to_string(early), i);
    }
    return "{" + header + R"("traceEvents": [)" + events + "]" + trailer + "}";
}

std::string rankHeader(int rank, int world) {
    return R"("distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) + R"(, "world_size": )" +
           std::to_string(world) + "}, ";
}

std::string errorOf(const std::vector<std::filesystem::path>& files, const std::filesystem::path& run) {
    try {
        importRun(files, run);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(ImportRun, RanksOfOneRunAreMatchedIntoCollectives) {
    const TraceFolder folder;
    const auto a = folder.write("a.json", rankTrace(rankHeader(0, 2), 300));
    const auto b = folder.write("b.json", rankTrace(rankHeader(1, 2), 100));
    const ImportResult result = importRun({b, a}, folder / "run");
    EXPECT_EQ(result.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(result.losses, 0u);

    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank WHERE state = 'complete'"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM api_call WHERE source = 4 AND kind = 1"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 2 AND complete = 1"),
              4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE last_rank = 1"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective_member WHERE rank = 0 AND wait_ns = 200000"), 4);
    EXPECT_EQ(trace.integer("SELECT n_ranks FROM communicator WHERE identity = 'inferred'"), 2);
    EXPECT_EQ(
        trace.integer("SELECT COUNT(*) FROM nccl_call WHERE evidence & 32 AND algorithm IS NULL AND protocol IS NULL"),
        8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM step"), 2);
    EXPECT_EQ(trace.integer("SELECT value FROM meta WHERE key = 'start_unix_ns'"), 1690000000000000000);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
}

TEST(ImportRun, RecordingsOfDifferentTimesAreNotTakenForOneJobInSilence) {
    const TraceFolder folder;
    const auto traceAt = [&](int rank, int64_t startUs) {
        return "{" + rankHeader(rank, 2) + R"("traceEvents": [)" + launchEvent(std::to_string(startUs), 1) + "," +
               kernelEvent("gemm", std::to_string(startUs + 10), "1000", 1) + "]}";
    };
    for (const int64_t laterUs : {int64_t{500}, int64_t{3'000'000'000}}) {
        const auto a = folder.write("a.json", traceAt(0, 1690000000000000));
        const auto b = folder.write("b.json", traceAt(1, 1690000000000000 + laterUs));
        const std::filesystem::path run = folder / ("run" + std::to_string(laterUs));
        importRun({a, b}, run);
        Database trace((run / "trace.db").string(), OpenMode::readOnly);
        const char* told =
            "SELECT COUNT(*) FROM loss WHERE kind = 'recordings_apart' AND severity = 'warning' AND message LIKE 'rank "
            "1 begins 3000 s after rank 0 has ended%'";
        EXPECT_EQ(trace.integer(told), laterUs > 1000 ? 1 : 0);
    }
}

TEST(ImportRun, ReadingTwiceForWantOfMemoryGivesTheSameRows) {
    const TraceFolder folder;
    const auto a = folder.write("a.json", rankTrace(rankHeader(0, 2), 300));
    const auto b = folder.write("b.json", rankTrace(rankHeader(1, 2), 100));
    importRun({a, b}, folder / "kept");
    importRun({a, b}, folder / "again", {.keepBytes = 1, .progress = {}});
    Database trace((folder / "kept/trace.db").string(), OpenMode::readOnly);
    trace.execute("ATTACH '" + (folder / "again/trace.db").string() + "' AS other");
    for (const std::string table : {"kernel", "api_call", "nvtx", "nccl_call", "collective", "collective_member",
                                    "communicator", "stream", "step", "string"}) {
        EXPECT_GT(trace.integer("SELECT COUNT(*) FROM main." + table), 0) << table;
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM (SELECT * FROM main." + table + " EXCEPT SELECT * FROM other." +
                                table + ")"),
                  0)
            << table;
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM (SELECT * FROM other." + table + " EXCEPT SELECT * FROM main." +
                                table + ")"),
                  0)
            << table;
    }
}

TEST(ImportRun, TimesCountFromTheFilesBaseWhereverItStands) {
    const TraceFolder folder;
    const auto withBase = [](int rank, const std::string& ts) {
        return "{" + rankHeader(rank, 2) + R"("traceEvents": [)" + kernelEvent("gemm", ts, "1", 1) +
               R"(], "baseTimeNanoseconds": 1700000000000000000})";
    };
    importRun({folder.write("a.json", withBase(0, "5.5")), folder.write("b.json", withBase(1, "7.25"))},
              folder / "run");
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT start_ns FROM kernel WHERE rank = 0"), 0);
    EXPECT_EQ(trace.integer("SELECT start_ns FROM kernel WHERE rank = 1"), 1750);
    EXPECT_EQ(trace.integer("SELECT value FROM meta WHERE key = 'start_unix_ns'"), 1700000000000005500);
}

TEST(ImportRun, AFileThatLostItsBaseTakesThatOfTheOthers) {
    const TraceFolder folder;
    const std::string whole = "{" + rankHeader(0, 2) + R"("traceEvents": [)" + kernelEvent("gemm", "5", "1", 1) +
                              R"(], "baseTimeNanoseconds": 1700000000000000000})";
    std::string cut = "{" + rankHeader(1, 2) + R"("traceEvents": [)" + kernelEvent("gemm", "9", "1", 1) + ", {";
    importRun({folder.write("a.json", whole), folder.write("b.json", cut)}, folder / "run");
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT start_ns FROM kernel WHERE rank = 1"), 4000);
    EXPECT_EQ(trace.integer(
                  "SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail' AND rank = 1 AND file = 'b.json' AND offset = " +
                  std::to_string(cut.size())),
              1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'clock' AND rank = 1"), 1);
}

TEST(ImportRun, TheRankComesFromTheFileNameWhereTheTraceTellsNone) {
    const TraceFolder folder;
    const auto a = folder.write("run.rank-3.json", rankTrace("", 300));
    const auto b = folder.write("worker1.json", rankTrace("", 100));
    const auto c = folder.write("other.json", rankTrace("", 200));
    const ImportResult result = importRun({a, b, c}, folder / "run");
    EXPECT_EQ(result.ranks, (std::vector<int32_t>{0, 1, 3}));
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'rank_unknown' AND rank = 0"), 1);
}

TEST(ImportRun, FileNamesThatTellRanks) {
    EXPECT_EQ(rankFromFileName("rank-34.Jul_15.pt.trace.json.gz"), 34);
    EXPECT_EQ(rankFromFileName("rank0_iter16_18.json"), 0);
    EXPECT_EQ(rankFromFileName("worker7_step_12.1694128201553.pt.trace.json.gz"), 7);
    EXPECT_EQ(rankFromFileName("Rank_5.json"), 5);
    EXPECT_EQ(rankFromFileName("rank_not_found.json"), std::nullopt);
    EXPECT_EQ(rankFromFileName("trace.json"), std::nullopt);
}

TEST(ImportRun, TwoFilesOfOneRankAreRefusedByName) {
    const TraceFolder folder;
    const auto a = folder.write("a.json", rankTrace(rankHeader(0, 1), 300));
    const auto b = folder.write("b.json", rankTrace(rankHeader(0, 1), 300));
    const std::string error = errorOf({a, b}, folder / "run");
    EXPECT_NE(error.find("rank 0"), std::string::npos);
    EXPECT_NE(error.find("a.json"), std::string::npos);
    EXPECT_NE(error.find("b.json"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(ImportRun, OneRankAloneIsAssumedToTalkToTheWholeJob) {
    const TraceFolder folder;
    importRun({folder.write("a.json", rankTrace(rankHeader(2, 8), 300))}, folder / "run");
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT n_ranks FROM communicator WHERE identity = 'assumed'"), 8);
    EXPECT_EQ(trace.integer("SELECT comm_rank FROM communicator_member"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE communicator_id IS NOT NULL"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE complete = 1"), 0) << "the others are not there";
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective_member WHERE wait_ns IS NOT NULL"), 0)
        << "nor when they arrived";
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity = 'info' AND message LIKE '%assumed%'"), 1);
}

TEST(ImportRun, OneRankOfAJobOfUnknownSizeTalksToNobodyKnows) {
    const TraceFolder folder;
    importRun({folder.write("a.json", rankTrace("", 300))}, folder / "run");
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM communicator"), 0);
}

TEST(ImportRun, PartOfAJobsRanksIsOneLossAndNotOnePerRank) {
    const TraceFolder folder;
    importRun({folder.write("a.json", rankTrace(rankHeader(2, 128), 300))}, folder / "run");
    Database trace((folder / "run/trace.db").string(), OpenMode::readOnly);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'missing_rank'"), 1);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE kind = 'missing_rank'"), 127);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 1);
}

TEST(ImportRun, OtherFormatsAreRecognisedByContentAndRefusedHonestly) {
    const TraceFolder folder;
    const auto sqlite = folder.write("trace.json", std::string("SQLite format 3\0", 16) + std::string(100, '\0'));
    EXPECT_NE(errorOf({sqlite}, folder / "run").find("Nsight Systems"), std::string::npos);
    const auto pickle = folder.write("dump", "\x80\x02}q\x01.");
    EXPECT_NE(errorOf({pickle}, folder / "run").find("flight recorder"), std::string::npos);
    EXPECT_NE(errorOf({folder.write("x", "no trace")}, folder / "run").find("not known"), std::string::npos);
    EXPECT_NE(errorOf({folder / "absent.json"}, folder / "run").find("cannot be opened"), std::string::npos);
    EXPECT_NE(errorOf({folder.write("empty.json", "")}, folder / "run").find("empty"), std::string::npos);
    EXPECT_NE(errorOf({folder.write("object.json", "{\"a\": 1}")}, folder / "run").find("traceEvents"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(ImportRun, GzipIsFoundByContentToo) {
    const TraceFolder folder;
    const ImportResult result =
        importRun({folder.writeGzip("trace.json", rankTrace(rankHeader(0, 1), 300))}, folder / "run");
    EXPECT_EQ(result.kernels, 4u);
}

}  // namespace
}  // namespace rankscope::collector
