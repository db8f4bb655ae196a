// SPDX-License-Identifier: Apache-2.0
// What NCCL's inspector writes, in the form of its README (formats v4.0 to v4.4).
#include <gtest/gtest.h>

#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

std::string head(int rank) {
    return R"("header": {"id": "0xe62dedaa97644a", "rank": )" + std::to_string(rank) +
           R"(, "n_ranks": 2, "nnodes": 2}, "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "",
           "rec_mechanism": "nccl_profiler_interface", "dump_timestamp_us": 1752867229276385, "hostname": "node)" +
           std::to_string(rank) + R"(", "pid": 43)" + std::to_string(rank) + "}";
}

/// Two channels; the first begins, the second ends.
std::string collective(const char* name, int number, int64_t bytes, int64_t startUs, int64_t endUs) {
    const auto at = [](int64_t us) { return std::to_string(1752867229000000 + us); };
    return R"("coll_perf": {"coll": ")" + std::string(name) + R"(", "coll_sn": )" + std::to_string(number) +
           R"(, "coll_msg_size_bytes": )" + std::to_string(bytes) +
           R"(, "coll_exec_time_us": 1, "coll_timing_source": "kernel_gpu", "event_trace_ts": {"coll_start_ts": 1,
           "coll_stop_ts": 2, "kernel_events": [{"channel_id": 0, "kernel_start_ts": )" +
           at(startUs) + R"(, "kernel_stop_ts": )" + at(endUs - 5) +
           R"(, "kernel_record_ts": 3}, {"channel_id": 1, "kernel_start_ts": )" + at(startUs + 3) +
           R"(, "kernel_stop_ts": )" + at(endUs) + R"(, "kernel_record_ts": 3}]}})";
}

std::string record(int rank, const std::string& operation) {
    return "{" + head(rank) + ", " + operation + "}\n";
}

class Inspector : public testing::Test {
  protected:
    Database import(const std::vector<std::filesystem::path>& files) {
        importRun(files, m_folder / "run");
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    std::string errorOf(const std::string& text) {
        try {
            import({m_folder.write("node0-pid1.log", text)});
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    const tests::TraceFolder m_folder;
};

TEST_F(Inspector, CollectivesOfTwoProcessesMeet) {
    std::vector<std::filesystem::path> files;
    for (int rank = 0; rank < 2; ++rank)
        files.push_back(m_folder.write("node" + std::to_string(rank) + "-pid43.log",
                                       record(rank, collective("AllReduce", 7, 4096, 100 + 50 * rank, 200)) +
                                           record(rank, collective("ReduceScatter", 9, 1024, 300 - 20 * rank, 400))));
    Database trace = import(files);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'source' AND value = 'nccl_inspector'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'light' AND value = '1'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM host"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE members = 2 AND complete = 1"), 2);
    EXPECT_EQ(trace.integer("SELECT last_rank FROM collective WHERE op = 'all_reduce'"), 1);
    EXPECT_EQ(trace.integer("SELECT bytes FROM collective WHERE op = 'all_reduce'"), 4096);
    EXPECT_EQ(trace.integer("SELECT bytes FROM collective WHERE op = 'reduce_scatter'"), 2048) << "of all ranks";
    EXPECT_EQ(trace.integer("SELECT transfer_ns FROM collective WHERE op = 'all_reduce'"), 50'000);
    EXPECT_EQ(trace.integer("SELECT n_ranks FROM communicator WHERE identity = 'comm_hash'"), 2);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE message LIKE 'collectives are missing%'"), 2)
        << "number 8, on both ranks";
}

TEST_F(Inspector, HeadersOfADumpHoldForWhatFollows) {
    const std::string text = "{" + head(1) + R"(, "dump_stats": {"coll_records": 1, "p2p_records": 1}})" + "\n{" +
                             collective("AllGather", 1, 8, 10, 20) + "}\n" +
                             R"({"p2p_perf": {"p2p": "Send", "p2p_sn": 8, "p2p_peer": 0, "p2p_msg_size_bytes": 64,
        "event_trace_ts": {"kernel_events": [{"kernel_start_ts": 1752867229000030, "kernel_stop_ts": 1752867229000040}]}}}
        {"proxy_trace": {}})";
    Database trace = import({m_folder.write("a.jsonl", text)});
    EXPECT_EQ(trace.integer("SELECT rank FROM rank"), 1);
    EXPECT_EQ(trace.integer("SELECT bytes FROM nccl_call WHERE op = 'all_gather'"), 16);
    EXPECT_EQ(trace.integer("SELECT peer FROM nccl_call WHERE op = 'send' AND bytes = 64"), 0);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
}

TEST_F(Inspector, AlgorithmAndProtocolAreToldSinceTheirVersion) {
    std::string told = collective("AllReduce", 1, 4096, 10, 20);
    told.insert(told.find("\"coll_sn\""), R"("coll_algo": "NVLS_TREE", "coll_proto": "LL128", )");
    std::string untold = collective("AllReduce", 2, 4096, 30, 40);
    untold.insert(untold.find("\"coll_sn\""), R"("coll_algo": "unknown", "coll_proto": "unknown", )");
    std::string named = head(0);
    named.insert(named.find("\"rank\""), R"("comm_name": "unknown", )");
    Database trace =
        import({m_folder.write("a.log", "{" + named + ", " + told + "}\n{" + named + ", " + untold + "}\n")});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE algorithm = 'nvls_tree' AND protocol = 'll128'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE algorithm IS NULL AND protocol IS NULL"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM communicator WHERE name LIKE '%unknown%'"), 0);
}

TEST_F(Inspector, WhatItsRingsLostIsSaid) {
    const auto stats = [](int collectives, int messages) {
        return "{" + head(0) + R"(, "dump_stats": {"coll_records": 1, "coll_dropped_total": 90,
            "coll_dropped_since_last_dump": )" +
               std::to_string(collectives) + R"(, "p2p_records": 0, "p2p_dropped_total": 7,
            "p2p_dropped_since_last_dump": )" +
               std::to_string(messages) + "}}\n";
    };
    // The first 40 stand in front of what was written, and no number tells of them.
    Database trace =
        import({m_folder.write("a.log", stats(40, 5) + record(0, collective("AllReduce", 41, 8, 1, 9)) + stats(2, 2) +
                                            record(0, collective("AllReduce", 44, 8, 11, 19)))});
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE 'collectives are missing%'"), 42);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE 'messages are missing%'"), 7);
}

TEST_F(Inspector, ALongTraceOfAProxyIsNoDamage) {
    std::string proxy = R"({"proxy_trace": {"record_type": "proxy_op", "is_final": true, "steps": [)";
    while (proxy.size() < 400'000) proxy += R"({"proxy_step_sn": 1, "step": 0, "total_us": 40, "wire_us": 10}, )";
    proxy += "{}]}}\n";
    const std::string good = record(0, collective("AllReduce", 1, 8, 1, 9));
    Database trace = import({m_folder.write("a.log", good + proxy + record(0, collective("AllReduce", 2, 8, 11, 19)))});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'bad_block'"), 0);
    Database torn = import({m_folder.write("b.log", good + proxy.substr(0, 100'000))});
    EXPECT_EQ(torn.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 1);
}

TEST_F(Inspector, ObjectsWithoutAnEndCostTheirLinesAndNoMore) {
    std::string text = record(0, collective("AllReduce", 1, 1024, 100, 200));
    // Were the end of each looked for in all that follows, this would take minutes.
    for (int i = 0; i < 50'000; ++i)
        text += R"({"header": {"id": "0x1", "rank": 0, "coll_perf": {)" + std::string("\n");
    text += record(0, collective("AllReduce", 2, 1024, 300, 400));
    Database trace = import({m_folder.write("damaged.log", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE kind = 'bad_block'"), 50'000);
}

TEST_F(Inspector, WithoutTimesItSaysHowToGetThem) {
    const std::string brief = R"("coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 8,
        "coll_exec_time_us": 61})";
    EXPECT_NE(errorOf(record(0, brief)).find("NCCL_INSPECTOR_DUMP_VERBOSE=1"), std::string::npos);
    EXPECT_NE(errorOf("{" + head(0) + "}").find("it tells of no operation"), std::string::npos);
    Database trace =
        import({m_folder.write("some.log", record(0, brief) + record(0, collective("Reduce", 2, 8, 1, 9)))});
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE '%without times%'"), 1);
}

TEST_F(Inspector, WhatIsDamagedIsLeftOutAndSaid) {
    const std::string good = record(0, collective("AllReduce", 1, 8, 1, 9));
    const std::string cut = good + good.substr(0, good.size() / 2);
    Database torn = import({m_folder.write("cut.log", cut)});
    EXPECT_EQ(torn.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 1);
    EXPECT_EQ(torn.integer("SELECT COUNT(*) FROM kernel"), 1);
    Database bad = import({m_folder.write("bad.log", good + "{\"coll_perf\": nonsense}\n[]\n" + good)});
    EXPECT_EQ(bad.integer("SELECT count FROM loss WHERE kind = 'bad_block'"), 2);
    EXPECT_EQ(bad.integer("SELECT COUNT(*) FROM kernel"), 2);
    // A quote that is none, and brackets of nothing, cost their line.
    Database stray = import({m_folder.write("stray.log", good + "{\"header\": \"{\n]\n,\n}:\n" + good + good + "]")});
    EXPECT_EQ(stray.integer("SELECT COUNT(*) FROM kernel"), 3);
    EXPECT_EQ(stray.integer("SELECT count FROM loss WHERE kind = 'bad_block'"), 4);
}

}  // namespace
}  // namespace rankscope::collector
