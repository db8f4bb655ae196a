// SPDX-License-Identifier: Apache-2.0
// Recordings of real jobs by other people, with what is known of them. They live beside the project; the tests skip
// where they are absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

class RecordedTraces : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(kKineto)) GTEST_SKIP() << "recorded runs are not here: " << kKineto;
    }

    Database import(const std::vector<std::filesystem::path>& files, const std::string& mapping = "") {
        ImportOptions options;
        if (!mapping.empty()) options.mapping = std::filesystem::path(RANKSCOPE_MAPPINGS) / (mapping + ".json");
        importRun(files, m_folder / "run", options);
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    Database import(const std::string& file) { return import(std::vector<std::filesystem::path>{kKineto / file}); }

    /// Length of the union of the kernels that fulfil `condition`.
    static int64_t unionNs(Database& trace, const std::string& condition) {
        return trace.integer(
            "WITH spans AS (SELECT start_ns AS s, start_ns + dur_ns AS e FROM kernel WHERE " + condition +
            "), reach AS (SELECT s, e, MAX(e) OVER (ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS "
            "before FROM spans) SELECT SUM(MAX(0, e - MAX(s, COALESCE(before, s)))) FROM reach");
    }
    static double overlap(Database& trace) {
        const int64_t communication = unionNs(trace, "nccl <> 0");
        return static_cast<double>(communication + unionNs(trace, "nccl = 0") - unionNs(trace, "1")) /
               static_cast<double>(communication);
    }
    static double busy(Database& trace) {
        return static_cast<double>(unionNs(trace, "1")) /
               static_cast<double>(trace.integer("SELECT MAX(start_ns + dur_ns) - MIN(start_ns) FROM kernel"));
    }

    const std::filesystem::path kKineto = std::filesystem::path(RANKSCOPE_SHARED_DATA) / "kineto";
    tests::TraceFolder m_folder;
};

TEST_F(RecordedTraces, EightRanksOfDlrmMatchIntoEightCollectives) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(kKineto / "dlrm_8rank")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_EQ(files.size(), 8u);
    Database trace = import(files);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2104);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_reduce'"), 8 * 3);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_to_all'"), 8 * 5);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE members = 8"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM communicator"), 1);

    // Nobody leaves a collective before the others: a real host's clocks agree within 7 us. Arrivals are up to 7.6 ms
    // apart.
    EXPECT_LE(trace.integer("SELECT MAX(spread) FROM (SELECT MAX(end_ns) - MIN(end_ns) AS spread FROM "
                            "collective_member GROUP BY collective_id)"),
              7000);
    EXPECT_EQ(trace.integer("SELECT MAX(last_arrival_ns - first_arrival_ns) FROM collective"), 7624000);

    std::vector<int64_t> late;
    store::Statement rows(trace, "SELECT last_rank FROM collective ORDER BY seq");
    while (rows.step()) late.push_back(rows.integer(0));
    EXPECT_EQ(late, (std::vector<int64_t>{7, 7, 7, 7, 7, 5, 5, 4}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
}

TEST_F(RecordedTraces, NcclParserConfigTellsSizesAndOverlap) {
    Database trace = import("hta/nccl_parser_config/nccl_data.json.gz");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_reduce'"), 15);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'broadcast'"), 6);
    EXPECT_EQ(trace.integer("SELECT MAX(bytes) FROM nccl_call"), 7875584 * 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE algorithm IS NOT NULL OR protocol IS NOT NULL"), 0)
        << "the name says RING_LL at 26 MB";
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE evidence & 16"), 21);
    EXPECT_EQ(
        trace.integer("SELECT n_ranks FROM communicator WHERE identity = 'process_group' AND name = 'default_pg'"), 2);
    EXPECT_NEAR(overlap(trace), 0.156, 0.0005);
    EXPECT_NEAR(busy(trace), 0.235, 0.001);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM step"), 3);
}

TEST_F(RecordedTraces, TraceDiffControlOverlapsAlmostHalf) {
    Database trace = import("hta/trace_diff/control/control.json.gz");
    EXPECT_EQ(trace.integer("SELECT rank FROM rank"), 3);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE nccl <> 0"), 60);
    EXPECT_NEAR(overlap(trace), 0.46, 0.005);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_to_all'"), 42);
}

TEST_F(RecordedTraces, NegativeQueueLengthHardlyOverlaps) {
    Database trace = import("hta/negative_queue_length_values_check/rank0.json.gz");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN string s ON s.id = k.name_id WHERE k.nccl <> 0 AND "
                            "s.text LIKE '%SendRecv%'"),
              80);
    EXPECT_NEAR(overlap(trace), 0.014, 0.0005);
}

TEST_F(RecordedTraces, Mi300CommunicationIsSeenWithAndWithoutArgs) {
    Database trace = import("mi300/mi300_resnet_act_checkpoint.json.gz");
    EXPECT_NEAR(static_cast<double>(trace.integer("SELECT SUM(dur_ns) FROM kernel WHERE nccl <> 0")) / 1e6, 71.5, 0.05);
    EXPECT_NEAR(overlap(trace), 0.22, 0.005);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_reduce' AND data_type = 'bf16'"), 6);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'unknown'"), 5)
        << "launched before the recording began";
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM device WHERE name = 'AMD Instinct MI300X'"), 1);
}

TEST_F(RecordedTraces, NanosecondTimesAreExact) {
    Database trace = import("hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz");
    EXPECT_EQ(trace.integer("SELECT value FROM meta WHERE key = 'start_unix_ns'"), 1712195495502094565);
}

TEST_F(RecordedTraces, RankFromTheFileNameAndIdsAboveInt64) {
    Database trace = import("hta/large_integer_trace/rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz");
    EXPECT_EQ(trace.integer("SELECT rank FROM rank"), 70);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_reduce'"), 1);
}

TEST_F(RecordedTraces, CudaSyncEventsBecomeSynchronizations) {
    Database trace = import("hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM synchronization"), 41);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM synchronization WHERE kind = 0"), 0);
}

TEST_F(RecordedTraces, HipTracesTellCallsAndCopySizes) {
    Database trace = import("hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 14);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM memcpy WHERE bytes > 0 AND kind = 1"), 2);
    EXPECT_GT(trace.integer("SELECT COUNT(*) FROM api_call WHERE kind = 1"), 0);
}

TEST_F(RecordedTraces, EveryOtherFileIsImported) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kKineto)) {
        if (!entry.is_regular_file()) continue;
        EXPECT_NO_THROW(importRun({entry.path()}, m_folder / "each")) << entry.path();
        Database trace((m_folder / "each/trace.db").string(), OpenMode::readOnly);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind IN ('bad_block', 'torn_tail', 'bad_text')"), 0)
            << entry.path();
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 1) << entry.path();
    }
}

TEST_F(RecordedTraces, DumpsOfAFlightRecorderTellWhoHadEndedWhat) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(kKineto.parent_path() / "flight_recorder/gpu_error_1st"))
        files.push_back(entry.path());
    ASSERT_EQ(files.size(), 16u);
    Database trace = import(files);
    // Rank 13 shares the group with rank 12, whose GPU had failed.
    const std::string ofRank12 =
        "FROM recorder_group a JOIN recorder_group b ON a.communicator_id = b.communicator_id JOIN "
        "communicator c ON c.id = a.communicator_id WHERE c.name = 'TENSOR_MODEL_PARALLEL_GROUP' AND "
        "a.rank = 12 AND b.rank = 13";
    EXPECT_EQ(trace.integer("SELECT b.completed - a.completed " + ofRank12), 12);
    EXPECT_EQ(trace.integer("SELECT b.enqueued - a.enqueued " + ofRank12), 9);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
}

TEST_F(RecordedTraces, PrimusPipelineIdlesAsPublished) {
    std::vector<std::filesystem::path> files;
    for (int stage = 0; stage < 8; ++stage)
        files.push_back(kKineto.parent_path() / "pipeline/primus_pp8" / ("pp_rank_" + std::to_string(stage) + ".json"));
    Database trace = import(files, "primus-pipeline");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 20 * 8 * 16 * 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'told_pipelines' AND value = "
                            "'1f1b 16;0 1 2 3 4 5 6 7'"),
              1);
    // Iteration 7 is the seventh step; all of its ranks are in it for as long as the first stage is.
    const auto inStep = [&](const std::string& what) {
        return static_cast<double>(trace.integer("SELECT " + what +
                                                 " FROM kernel k JOIN step s ON s.rank = k.rank AND s.step = 6 WHERE "
                                                 "k.start_ns >= s.start_ns AND k.start_ns < s.start_ns + s.dur_ns"));
    };
    EXPECT_NEAR(1 - inStep("SUM(k.dur_ns)") / 8 / inStep("MAX(s.dur_ns)"), 0.354, 0.0005);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
}

TEST_F(RecordedTraces, StragglerTimelineHasAHeavyLastStage) {
    Database trace = import({kKineto.parent_path() / "straggler/timeline-ST.json.gz"}, "straggler-analysis");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(DISTINCT step) FROM step"), 32);
    // As the file tells: 32 steps of 4 micro-batches, 3 borders between 4 stages, both ways, on 2 ranks each.
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM p2p WHERE complete = 1"), 32 * 4 * 3 * 2 * 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_gather' AND members = 2"), 32 * 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 8"), 32);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 2"), 32 * 2);
    const auto workOf = [&](const char* ranks) {
        return static_cast<double>(
            trace.integer(std::string("SELECT AVG(dur_ns) FROM kernel k JOIN string s ON s.id = k.name_id WHERE s.text "
                                      "LIKE 'forward-compute%' AND k.rank IN ") +
                          ranks));
    };
    EXPECT_GT(workOf("(6, 7)") / workOf("(0, 1, 2, 3, 4, 5)"), 1.5);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
}

TEST_F(RecordedTraces, OutputsOfNcclTestsAreRefusedWithTheOptionThatTakesThem) {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kKineto.parent_path() / "nccl_tests")) {
        if (!entry.is_regular_file()) continue;
        ++files;
        try {
            importRun({entry.path()}, m_folder / "run");
            ADD_FAILURE() << entry.path();
        } catch (const ImportError& error) {
            EXPECT_NE(std::string(error.what()).find("--links-table FILE"), std::string::npos) << error.what();
        }
    }
    EXPECT_EQ(files, 7u);
    EXPECT_FALSE(std::filesystem::exists(m_folder / "run"));
}

TEST_F(RecordedTraces, NsysOfTwoGpusHasItsExchanges) {
    const std::filesystem::path nsys = std::filesystem::path(RANKSCOPE_SHARED_DATA) / "nsys";
    if (!std::filesystem::exists(nsys)) GTEST_SKIP() << "recorded runs are not here: " << nsys;
    Database trace = import(std::vector<std::filesystem::path>{nsys / "mfu_2gpu_before.sqlite"});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 4010);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM memcpy"), 1020);
    for (const char* rank : {"0", "1"}) {
        const std::string own = std::string(" AND rank = ") + rank;
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE nccl <> 0" + own), 33);
        const int64_t busy = unionNs(trace, "1" + own);
        const int64_t all = trace.integer("SELECT MAX(start_ns + dur_ns) - MIN(start_ns) FROM kernel WHERE 1" + own);
        EXPECT_GE(static_cast<double>(busy) / static_cast<double>(all), 0.87);
        EXPECT_LE(static_cast<double>(busy) / static_cast<double>(all), 0.91);
        EXPECT_EQ(unionNs(trace, "nccl <> 0" + own) + unionNs(trace, "nccl = 0" + own), busy);  // nothing overlaps
    }
    EXPECT_GE(trace.integer("SELECT COUNT(*) FROM collective WHERE members = 2 AND op = 'all_to_all'"), 31);

    Database none = import(std::vector<std::filesystem::path>{nsys / "h100_2gpu_1s.sqlite"});
    EXPECT_EQ(none.integer("SELECT COUNT(*) FROM kernel"), 3442);
    EXPECT_EQ(none.integer("SELECT COUNT(*) FROM nccl_call"), 0);
}

/// Recipes of Nsight Systems' documentation and of its own reports (cuda_gpu_kern_sum, cuda_gpu_mem_time_sum,
/// cuda_kern_exec_sum), as they stand there, on an export and on what was imported of it.
TEST_F(RecordedTraces, QueriesForNsightSystemsAnswerAlike) {
    const std::filesystem::path file = std::filesystem::path(RANKSCOPE_SHARED_DATA) / "nsys" / "mfu_2gpu_before.sqlite";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "recorded runs are not here: " << file;
    import(std::vector<std::filesystem::path>{file});
    // As any program opens them: views of a file are closed to our readers.
    Database original(file.string(), OpenMode::immutable),
        imported((m_folder / "run/trace.db").string(), OpenMode::create);
    const std::pair<const char*, int> queries[] = {
        // and their columns
        {"SELECT names.value, COUNT(*), SUM(kern.end - kern.start), MIN(kern.end - kern.start), MAX(kern.end - "
         "kern.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS kern JOIN StringIds AS names ON names.id = kern.shortName "
         "GROUP BY names.value ORDER BY 3 DESC, 1",
         5},
        {"SELECT oper.label, COUNT(*), SUM(mem.end - mem.start), SUM(mem.bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS mem "
         "JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id = mem.copyKind GROUP BY oper.label ORDER BY 1",
         4},
        {"SELECT src.name, dst.label, COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS mem JOIN ENUM_CUDA_MEM_KIND AS src "
         "ON "
         "src.id = mem.srcKind JOIN ENUM_CUDA_MEM_KIND AS dst ON dst.id = mem.dstKind GROUP BY 1, 2 ORDER BY 1, 2",
         3},
        // Versions of CUDA's calls are left out of their names.
        {"SELECT kern.globalPid / 0x1000000 % 0x1000000 AS pid, kern.deviceId, replace(names.value, '_v7000', ''), "
         "COUNT(*), SUM(r.end - "
         "r.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS kern JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON kern.correlationId "
         "= r.correlationId AND kern.globalPid / 0x1000000 = r.globalTid / 0x1000000 JOIN StringIds AS names ON "
         "names.id = r.nameId GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
         5},
        {"SELECT globalTid / 0x1000000 % 0x1000000 AS pid, globalTid % 0x1000000 AS tid, COUNT(*) FROM "
         "CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2 ORDER BY 1, 2",
         3},
    };
    const auto answer = [](Database& database, const char* query, int columns) {
        std::string rows;
        store::Statement statement(database, query);
        while (statement.step()) {
            for (int column = 0; column < columns; ++column) rows += std::string(statement.text(column)) + '|';
            rows += '\n';
        }
        return rows;
    };
    for (const auto& [query, columns] : queries) {
        EXPECT_NE(answer(original, query, columns), "") << query;
        EXPECT_EQ(answer(imported, query, columns), answer(original, query, columns)) << query;
    }
}

TEST_F(RecordedTraces, EveryNsysExportIsReadOrSaysWhatItLacks) {
    const std::filesystem::path nsys = std::filesystem::path(RANKSCOPE_SHARED_DATA) / "nsys";
    if (!std::filesystem::exists(nsys)) GTEST_SKIP() << "recorded runs are not here: " << nsys;
    size_t read = 0, without = 0;
    for (const auto& entry : std::filesystem::directory_iterator(nsys)) {
        try {
            read += importRun({entry.path()}, m_folder / "run").kernels > 0;
        } catch (const ImportError& error) {
            without += std::string(error.what()).find("the report holds no GPU work") != std::string::npos;
        }
    }
    EXPECT_EQ(read, 5u);
    EXPECT_EQ(without, 2u);
}

}  // namespace
}  // namespace rankscope::collector
