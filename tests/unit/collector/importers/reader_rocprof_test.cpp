// SPDX-License-Identifier: Apache-2.0
// Recordings of rocprofv3, as JSON and as databases of both schemas: what becomes of small ones, of damaged ones, and
// of those with nothing in them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

/// A record's times and the number of the call that caused it.
std::string rocTimes(int64_t startNs, int64_t endNs, int64_t correlation) {
    return R"("correlation_id": {"internal": )" + std::to_string(correlation) +
           R"(, "external": 0}, "start_timestamp": )" + std::to_string(startNs) + R"(, "end_timestamp": )" +
           std::to_string(endNs);
}

/// One process as rocprofv3 writes it: a range around a gemm, an all-reduce with its call, and a copy to the GPU. `gpu`
/// is its agent, 11 or 12.
std::string rocprofProcess(int64_t pid, int64_t gpu, int64_t lateNs = 0) {
    const auto call = [&](int kind, int operation, int64_t startNs, int64_t endNs, int64_t correlation) {
        return R"({"kind": )" + std::to_string(kind) + R"(, "operation": )" + std::to_string(operation) +
               R"(, "thread_id": )" + std::to_string(pid) + ", " + rocTimes(startNs, endNs, correlation) + "}";
    };
    const auto kernel = [&](int64_t id, int64_t stream, int64_t startNs, int64_t endNs, int64_t correlation) {
        return R"({"kind": 0, "operation": 1, "thread_id": 9, )" + rocTimes(startNs, endNs, correlation) +
               R"(, "dispatch_info": {"agent_id": {"handle": )" + std::to_string(gpu) +
               R"(}, "queue_id": {"handle": 1}, "kernel_id": )" + std::to_string(id) +
               R"(, "dispatch_id": 1, "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 2, "z": 1}},)" +
               R"( "stream_id": {"handle": )" + std::to_string(stream) + "}}";
    };
    return R"({"metadata": {"pid": )" + std::to_string(pid) + R"J(, "command": ["train"]}, "agents": [
      {"id": {"handle": 1}, "type": 1, "name": "EPYC", "logical_node_type_id": 0},
      {"id": {"handle": 11}, "type": 2, "product_name": "AMD Instinct MI300X", "cu_count": 304, "logical_node_type_id": 0},
      {"id": {"handle": 12}, "type": 2, "product_name": "AMD Instinct MI300X", "cu_count": 304, "logical_node_type_id": 1}],
     "strings": {"callback_records": [], "buffer_records": [{"kind": "KERNEL_DISPATCH", "operations": ["NONE", "COMPLETE"]},
       {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"]},
       {"kind": "RCCL_API", "operations": ["ncclAllReduce"]},
       {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxMarkA", "roctxThreadRangeA"]},
       {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
       {"kind": "MEMORY_COPY", "operations": ["HOST_TO_DEVICE"]}, {"kind": "HSA_CORE_API", "operations": ["hsa_init"]}],
       "marker_api": [{"key": 30, "value": "step 0"}, {"key": 31, "value": "here"}]},
     "kernel_symbols": [{"kernel_id": 0}, {"kernel_id": 7, "kernel_name": "gemm.kd", "formatted_kernel_name": "gemm"},
       {"kernel_id": 8, "formatted_kernel_name": "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
}],
     "callback_records": {"counter_collection": []},
     "buffer_records": {"kernel_dispatch": [)J" +
           kernel(7, 1, 2000 + lateNs, 5000 + lateNs, 21) + ", " + kernel(8, 2, 6000 + lateNs, 9000, 22) +
           R"(], "hip_api": [)" + call(1, 0, 1000, 1100, 21) + ", " + call(1, 0, 1210, 1290, 22) + ", " +
           call(1, 1, 1300, 1350, 23) + R"(], "hsa_api": [)" + call(6, 0, 10, 20, 1) + R"(], "marker_api": [)" +
           call(3, 1, 900, 9500, 30) + ", " + call(4, 0, 900, 901, 30) + ", " + call(3, 0, 950, 950, 31) +
           R"(], "rccl_api": [)" + call(2, 0, 1200, 1295, 24) + R"(], "memory_copy": [{"kind": 5, "operation": 0, )" +
           rocTimes(1400, 1800, 23) + R"(, "src_agent_id": {"handle": 1}, "dst_agent_id": {"handle": )" +
           std::to_string(gpu) + R"(}, "bytes": 4096, "stream_id": {"handle": 1}}], "scratch_memory": [{"kind": 9}]}})";
}

std::string rocprofFile(const std::string& processes) {
    return R"({"rocprofiler-sdk-tool": [)" + processes + "]}";
}

class RocprofReader : public testing::Test {
  protected:
    Database import(const std::vector<std::filesystem::path>& files) {
        m_result = importRun(files, m_folder / "run");
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    std::string errorOf(const std::filesystem::path& file) {
        try {
            importRun({file}, m_folder / "none");
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    static void expectTheJob(Database& trace) {
        const auto count = [&](const std::string& what) { return trace.integer("SELECT COUNT(*) FROM " + what); };
        EXPECT_EQ(count("kernel"), 4);
        EXPECT_EQ(count("kernel k JOIN string s ON s.id = k.name_id WHERE s.text = 'gemm' AND k.grid_blocks = 8 AND "
                        "k.block_threads = 256 AND k.nccl = 0"),
                  2);
        EXPECT_EQ(count("memcpy WHERE kind = 1 AND bytes = 4096 AND dur_ns = 400"), 2);
        EXPECT_EQ(count("api_call a JOIN kernel k ON k.rank = a.rank AND k.correlation_id = a.correlation_id WHERE "
                        "a.kind = 1"),
                  4);
        EXPECT_EQ(count("api_call"), 6);
        EXPECT_EQ(count("nvtx n JOIN string s ON s.id = n.name_id WHERE s.text = 'step 0' AND n.dur_ns = 8600"), 2);
        EXPECT_EQ(count("nvtx n JOIN string s ON s.id = n.name_id WHERE s.text = 'here' AND n.kind = 3"), 2);
        EXPECT_EQ(count("nvtx"), 4);
        EXPECT_EQ(count("nccl_call WHERE op = 'all_reduce' AND kernel_id IS NOT NULL"), 2);
        EXPECT_EQ(count("collective WHERE op = 'all_reduce' AND members = 2"), 1);
        EXPECT_EQ(count("device WHERE name = 'AMD Instinct MI300X'"), 2);
        EXPECT_EQ(count("process WHERE pid IN (500, 600)"), 2);
    }

    tests::TraceFolder m_folder;
    ImportResult m_result;
};

TEST_F(RocprofReader, ProcessesOfOneJsonAreRanksByDevice) {
    const auto file =
        m_folder.write("results.json", rocprofFile(rocprofProcess(600, 12) + "," + rocprofProcess(500, 11, 300)));
    Database trace = import({file});
    EXPECT_EQ(m_result.source, "rocprofv3");
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    expectTheJob(trace);
    EXPECT_EQ(trace.integer("SELECT p.pid FROM rank r JOIN process p ON p.id = r.process_id WHERE r.rank = 0"), 500);
    // The one on device 0 comes 300 ns late, and the other waits for it.
    EXPECT_EQ(trace.integer("SELECT last_rank FROM collective"), 0);
    EXPECT_EQ(trace.integer("SELECT wait_ns FROM collective_member WHERE rank = 1"), 300);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%not read: scratch_memory'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'the devices are AMD''s%'"), 1);
}

TEST_F(RocprofReader, AFileOfEachRankIsNumberedByItsName) {
    Database trace = import({m_folder.write("results_rank_0.json", rocprofFile(rocprofProcess(500, 11))),
                             m_folder.writeGzip("results_rank_1.json.gz", rocprofFile(rocprofProcess(600, 12)))});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    expectTheJob(trace);
}

TEST_F(RocprofReader, ACutJsonGivesWhatStandsInFrontOfTheCut) {
    const std::string whole = rocprofFile(rocprofProcess(500, 11) + "," + rocprofProcess(600, 12));
    const auto cut = m_folder.write("cut.json", whole.substr(0, whole.rfind("\"marker_api\": [{\"kind\"")));
    Database trace = import({cut});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail' AND severity = 'error'"), 1);
    std::string hurt = whole;
    hurt.replace(hurt.find("\"dispatch_info\""), 15, "\"dispatched\xff: \"");
    import({m_folder.write("hurt.json", hurt)});
    for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
        const auto file = m_folder.write("part.json", whole.substr(0, bytes));
        try {
            importRun({file}, m_folder / "part");
        } catch (const ImportError&) {  // nothing in it
        }
    }
}

TEST_F(RocprofReader, AJsonWithNothingInItIsRefused) {
    EXPECT_NE(errorOf(m_folder.write("a.json", rocprofFile(""))).find("no kernels and no copies"), std::string::npos);
    EXPECT_NE(errorOf(m_folder.write("b.json", R"({"rocprofiler-sdk-tool": 7})")).find("no kernels"),
              std::string::npos);
    const std::string times =
        R"({"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"start_timestamp": 9, )"
        R"("end_timestamp": 5, "dispatch_info": {}}, {"start_timestamp": 18446744073709551615, )"
        R"("end_timestamp": 5, "dispatch_info": {}}, [], 7, null]}}]})";
    EXPECT_NE(errorOf(m_folder.write("c.json", times)).find("no kernels"), std::string::npos);
}

TEST_F(RocprofReader, WithoutCallsOfHipThatIsSaid) {
    std::string text = rocprofFile(rocprofProcess(500, 11));
    const size_t from = text.find("\"hip_api\": ["), to = text.find("\"hsa_api\"");
    text.replace(from, to - from, "\"hip_api\": [], ");
    Database trace = import({m_folder.write("a.json", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'no calls of HIP were recorded%'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
}

/// The same process as rows of rocpd. Times and places stand in the rows, or, `apart`, in tables of their own.
void fillRocpd(Database& database, const std::string& ending, int64_t pid, int64_t gpu, bool apart,
               int64_t lateNs = 0) {
    const auto run = [&](std::string sql) {
        for (size_t at = 0; (at = sql.find("{}", at)) != std::string::npos;) sql.replace(at, 2, ending);
        database.execute(sql);
    };
    const std::string place = apart
                                  ? "track_id INTEGER, start_id INTEGER, end_id INTEGER"
                                  : "pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, "
                                    "start BIGINT, end BIGINT";
    run("CREATE TABLE rocpd_string{} (id INTEGER PRIMARY KEY, string TEXT);"
        "CREATE TABLE rocpd_info_node{} (id INTEGER, hostname TEXT);"
        "CREATE TABLE rocpd_info_process{} (id INTEGER, nid INTEGER, pid INTEGER, environment JSONB);"
        "CREATE TABLE rocpd_info_thread{} (id INTEGER, tid INTEGER);"
        "CREATE TABLE rocpd_info_agent{} (id INTEGER, pid INTEGER, type TEXT, type_index INTEGER, product_name TEXT);"
        "CREATE TABLE rocpd_info_kernel_symbol{} (id INTEGER, kernel_name TEXT, display_name TEXT);"
        "CREATE TABLE rocpd_event{} (id INTEGER, category_id INTEGER, stack_id INTEGER, extdata JSONB);"
        "CREATE TABLE rocpd_arg{} (event_id INTEGER, name TEXT, value TEXT);"
        "CREATE TABLE rocpd_track{} (id INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
        "stream_id "
        "INTEGER); CREATE TABLE rocpd_timestamp{} (id INTEGER PRIMARY KEY, value BIGINT);"
        "CREATE TABLE rocpd_region{} (" +
        place +
        ", name_id INTEGER, event_id INTEGER);"
        "CREATE TABLE rocpd_sample{} (track_id INTEGER, " +
        std::string(apart ? "timestamp_id" : "timestamp") +
        " INTEGER, name_id INTEGER, event_id INTEGER);"
        "CREATE TABLE rocpd_kernel_dispatch{} (" +
        place +
        ", kernel_id INTEGER, event_id INTEGER, grid_size_x INTEGER, "
        "grid_size_y INTEGER, grid_size_z INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, "
        "workgroup_size_z "
        "INTEGER); CREATE TABLE rocpd_memory_copy{} (" +
        place +
        ", src_agent_id INTEGER, dst_agent_id INTEGER, size "
        "INTEGER, event_id INTEGER); CREATE TABLE rocpd_memory_allocate{} (id INTEGER);"
        "INSERT INTO rocpd_string{} VALUES (1, 'HIP_RUNTIME_API_EXT'), (2, 'RCCL_API'), (3, 'MARKER_CORE_RANGE_API'), "
        "(4, "
        "'hipLaunchKernel'), (5, 'ncclAllReduce'), (6, 'roctxThreadRangeA'), (7, 'hipMemcpyAsync'), (8, "
        "'KERNEL_DISPATCH');"
        "INSERT INTO rocpd_info_node{} VALUES (1, 'mi300-a');"
        "INSERT INTO rocpd_info_kernel_symbol{} VALUES (7, 'gemm.kd', 'gemm'), (8, 'x', 'ncclDevKernel_Generic_4()');"
        "INSERT INTO rocpd_memory_allocate{} VALUES (1);");
    const std::string p = std::to_string(pid), a = std::to_string(gpu);
    run("INSERT INTO rocpd_info_process{} VALUES (" + p + ", 1, " + p + ", '{\"RANK\": \"" + std::to_string(gpu - 9) +
        "\", \"WORLD_SIZE\": \"4\", \"LOCAL_RANK\": \"0\", \"TOKEN\": \"secret\"}');"
        "INSERT INTO rocpd_info_thread{} VALUES (" +
        p + ", " + p +
        ");"
        "INSERT INTO rocpd_info_agent{} VALUES (1, " +
        p + ", 'CPU', 0, 'EPYC'), (11, " + p + ", 'GPU', 0, 'AMD Instinct MI300X'), (12, " + p +
        ", 'GPU', 1, 'AMD Instinct MI300X');"
        "INSERT INTO rocpd_track{} VALUES (1, " +
        p + ", " + p + ", " + a + ", 1, 1), (2, " + p + ", " + p + ", " + a + ", 1, 2);");
    int64_t next = 1;
    const auto event = [&](int category, int64_t correlation, const std::string& message) {
        run("INSERT INTO rocpd_event{} VALUES (" + std::to_string(next) + ", " + std::to_string(category) + ", " +
            std::to_string(correlation) + ", '" + message + "')");
        return std::to_string(next++);
    };
    const auto where = [&](int stream, int64_t startNs, int64_t endNs) {
        const std::string start = std::to_string(startNs), end = std::to_string(endNs), s = std::to_string(stream);
        if (!apart) return p + ", " + p + ", " + a + ", 1, " + s + ", " + start + ", " + end;
        const std::string id = std::to_string(2 * next);
        run("INSERT INTO rocpd_timestamp{} VALUES (" + id + ", " + start + "), (" + id + " + 1, " + end + ")");
        return s + ", " + id + ", " + id + " + 1";
    };
    const auto region = [&](int name, int category, int64_t startNs, int64_t endNs, int64_t correlation,
                            const std::string& message = "{}") {
        const std::string at = where(1, startNs, endNs), id = event(category, correlation, message);
        run("INSERT INTO rocpd_region{} VALUES (" + at + ", " + std::to_string(name) + ", " + id + ")");
        return id;
    };
    const auto kernel = [&](int name, int stream, int64_t startNs, int64_t endNs, int64_t correlation) {
        const std::string at = where(stream, startNs, endNs), id = event(8, correlation, "{}");
        run("INSERT INTO rocpd_kernel_dispatch{} VALUES (" + at + ", " + std::to_string(name) + ", " + id +
            ", 1000, 2, 1, 256, 1, 1)");
    };
    kernel(7, 1, 2000 + lateNs, 5000 + lateNs, 21);
    kernel(8, 2, 6000 + lateNs, 9000, 22);
    region(4, 1, 1000, 1100, 21);
    region(4, 1, 1210, 1290, 22);
    region(7, 1, 1300, 1350, 23);
    const std::string collective = region(5, 2, 1200, 1295, 24);
    run("INSERT INTO rocpd_arg{} VALUES (" + collective + ", 'count', '1024'), (" + collective + ", 'datatype', '7')");
    region(6, 3, 900, 9500, 30, "{\"message\": \"step 0\"}");
    const std::string copied = where(1, 1400, 1800), copy = event(8, 23, "{}");
    run("INSERT INTO rocpd_memory_copy{} VALUES (" + copied + ", 1, " + a + ", 4096, " + copy + ")");
    where(1, 950, 950);
    const std::string time = apart ? std::to_string(2 * next) : "950";
    run("INSERT INTO rocpd_sample{} VALUES (1, " + time + ", NULL, " + event(3, 31, "{\"message\": \"here\"}") + ")");
}

TEST_F(RocprofReader, DatabasesOfBothSchemasAndOfSeveralProcesses) {
    for (const bool apart : {false, true}) {
        const auto file = m_folder / (apart ? "apart_results.db" : "results.db");
        {
            Database database(file.string(), OpenMode::create);
            fillRocpd(database, "_00001111_aaaa", 600, 12, apart);
            fillRocpd(database, "_00002222_bbbb", 500, 11, apart, 300);
        }
        std::filesystem::remove_all(m_folder / "run");
        Database trace = import({file});
        EXPECT_EQ(m_result.source, "rocpd");
        EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3})) << "by their environment";
        expectTheJob(trace);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND last_rank IS NULL"), 1)
            << "two of the four ranks are not there";
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'job_world_size' AND value = '4'"), 1);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM host WHERE name = 'mi300-a'"), 1);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%not read: rocpd_memory_allocate'"), 1);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE value LIKE '%secret%'"), 0);
    }
}

TEST_F(RocprofReader, DamagedAndEmptyDatabases) {
    const auto file = m_folder / "results.db";
    {
        Database database(file.string(), OpenMode::create);
        fillRocpd(database, "_00001111_aaaa", 500, 11, false);
    }
    std::ifstream in(file, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    for (size_t bytes = 0; bytes < whole.size(); bytes += 97 * 41) {
        for (const bool isCut : {true, false}) {
            std::string text = isCut ? whole.substr(0, bytes) : whole;
            if (!isCut)
                text.replace(bytes, std::min<size_t>(64, whole.size() - bytes),
                             std::min<size_t>(64, whole.size() - bytes), '\xff');
            const auto damaged = m_folder.write("damaged.db", text);
            try {
                importRun({damaged}, m_folder / "damaged");
            } catch (const ImportError&) {  // told
            }
        }
    }
    const auto empty = m_folder / "empty.db";
    {
        Database database(empty.string(), OpenMode::create);
        fillRocpd(database, "_00001111_aaaa", 500, 11, false);
        database.execute(
            "DELETE FROM rocpd_kernel_dispatch_00001111_aaaa; DELETE FROM rocpd_memory_copy_00001111_aaaa");
    }
    EXPECT_NE(errorOf(empty).find("no kernels and no copies"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::collector
