// SPDX-License-Identifier: Apache-2.0
// Recordings of rocprofv3, as JSON and as databases of both schemas: what becomes of small ones, of damaged ones, and
// of those with nothing in them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/importers/rocprof_run.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/rocpd_rows.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;
using tests::fillRocpd;

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

TEST_F(RocprofReader, WhatIsLeftOutIsTold) {
    RocprofRun run("a.json");
    RocprofRun::Process& process = run.process(0);
    process.agents[1] = {};
    const RocprofTimes times{1000, 2000, 1};
    for (int64_t gpu = 100; gpu < 360; ++gpu) run.addKernel(process, gpu, 1, times, "gemm", {});
    for (int64_t agent : {int64_t{100}, int64_t{354}, int64_t{355}, int64_t{1}})
        run.addKernel(process, agent, 1, times, "gemm", {});
    process.agents[100].isGpu = true;
    run.addCopy(process, 1, 100, 1, times, 64);
    run.addCopy(process, 1, 1, 1, times, 64);
    run.addCopy(process, 7, 8, 1, times, 64);
    for (const char* name :
         {"ncclAllToAll", "ncclAllReduceWithBias", "ncclCommCount", "ncclGetVersion", "mscclRunAlgo"})
        run.addCall(process, "RCCL_API", 1, times, name, std::nullopt);
    std::map<std::string, int64_t> losses;
    for (const ImportLoss& loss : run.losses().all()) losses[loss.message] = loss.count;
    EXPECT_EQ(losses["kernels and copies are left out that are on more devices than a host has"], 6);
    EXPECT_EQ(losses["kernels on an agent that is no GPU are left out"], 1);
    EXPECT_EQ(losses["copies are left out that are from no GPU and to none that the file names"], 2);
    EXPECT_EQ(losses["calls of RCCL are left out that are none of the operations known here"], 1);
    size_t kernels = 0, copies = 0;
    run.handOver({}, [&](FileRank rank) {
        kernels += rank.recording.kernels.size();
        copies += rank.recording.memcpys.size();
    });
    EXPECT_EQ(kernels, 255u + 2);
    EXPECT_EQ(copies, 1u);
}

TEST_F(RocprofReader, WithoutCallsOfHipThatIsSaid) {
    std::string text = rocprofFile(rocprofProcess(500, 11));
    const size_t from = text.find("\"hip_api\": ["), to = text.find("\"hsa_api\"");
    text.replace(from, to - from, "\"hip_api\": [], ");
    Database trace = import({m_folder.write("a.json", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'no calls of HIP were recorded%'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
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
