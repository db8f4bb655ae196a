// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems: what becomes of a small one, of damaged ones, and of databases that are none.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/importers/nsys_nccl.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

constexpr int64_t kHost = 1ll << 48;
int64_t globalTid(int64_t pid, int64_t tid) {
    return kHost | (pid << 24) | tid;
}

/// A report of two processes of one GPU each, 500 and 600, in the tables and columns of schema 3.x.
class Report {
  public:
    explicit Report(const std::filesystem::path& file) : m_file(file), m_database(file.string(), OpenMode::create) {
        m_database.execute(
            "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,"
            " correlationId INT, globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT,"
            " blockX INT, blockY INT, blockZ INT, graphNodeId INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId "
            "INT);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT, domainId INT, text TEXT,"
            " textId INT, color INT, category INT, binaryData TEXT);"
            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT, name TEXT,"
            " offset INT);"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, systemClockNs INT);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330000000000, 5000);"
            "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, totalMemory INT, smCount INT, computeMajor INT,"
            " computeMinor INT, cuDevice INT);"
            "INSERT INTO TARGET_INFO_GPU VALUES (7, 'NVIDIA H100 80GB HBM3', 80000000000, 132, 9, 0, 0),"
            " (8, 'NVIDIA H100 80GB HBM3', 80000000000, 132, 9, 0, 1);"
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 0, 18, 'NCCL communicator ID', NULL),"
            " (1, 2, 1, 5, 'No. of ranks', 8), (1, 2, 2, 5, 'Rank', 12),"
            " (1, 3, 0, 18, 'NCCL communicator ID', NULL), (1, 3, 1, 22, 'Message size [bytes]', 8),"
            " (1, 3, 2, 5, 'Peer rank', 16);");
    }
    Database& database() { return m_database; }
    const std::filesystem::path& file() const { return m_file; }

    int64_t text(const std::string& text) {
        store::Statement(m_database, "INSERT INTO StringIds VALUES (?1, ?2)").bind(1, ++m_texts).bind(2, text).run();
        return m_texts;
    }
    /// A kernel of 100 ns that its process launched 50 ns earlier.
    void kernel(int64_t pid, int64_t startNs, int64_t name, int64_t stream = 7,
                std::optional<int64_t> device = std::nullopt) {
        ++m_correlation;
        store::Statement(m_database,
                         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?1 + 100, ?2, 1, ?3, ?4, ?5,"
                         " ?6, ?6, 8, 2, 1, 128, 1, 1, NULL)")
            .bind(1, startNs)
            .bind(2, device.value_or(pid == 500 ? 0 : 1))
            .bind(3, stream)
            .bind(4, m_correlation)
            .bind(5, globalTid(pid, 0))
            .bind(6, name)
            .run();
        store::Statement(m_database, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?1 + 10, ?2, ?3, ?4)")
            .bind(1, startNs - 50)
            .bind(2, globalTid(pid, pid))
            .bind(3, m_correlation)
            .bind(4, launch())
            .run();
    }
    /// A range of a domain. `payload`: the schema and the words of a payload of NCCL's.
    void range(int64_t pid, int64_t startNs, int64_t endNs, const std::string& name, int64_t domain = 0,
               const std::string& payload = "") {
        store::Statement statement(m_database,
                                   "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, ?3, ?4, ?5, NULL, NULL,"
                                   " NULL, CAST(?6 AS BLOB))");
        statement.bind(1, startNs).bind(2, endNs).bind(3, globalTid(pid, pid)).bind(4, domain).bind(5, name);
        if (payload.empty())
            statement.bindNull(6);
        else
            statement.bind(6, payload);
        statement.run();
    }
    void nccl(int64_t pid, int64_t startNs, const std::string& name, const std::string& payload = "") {
        range(pid, startNs, startNs + 5, name, 1, payload);
    }

    /// A blob as Nsight Systems exports a payload: header, then the words by their size.
    static std::string payload(uint32_t schema, std::initializer_list<std::pair<uint64_t, size_t>> words) {
        std::string body;
        for (const auto& [word, bytes] : words) body.append(reinterpret_cast<const char*>(&word), bytes);
        const uint32_t head[] = {1, 0, schema, 0};
        const uint64_t sizes[] = {body.size(), 32 + body.size()};
        return std::string(reinterpret_cast<const char*>(head), sizeof head) +
               std::string(reinterpret_cast<const char*>(sizes), sizeof sizes) + body;
    }
    static std::string init(uint64_t hash, uint32_t ranks, uint32_t rank) {
        return payload(2, {{hash, 8}, {ranks, 4}, {rank, 4}});
    }
    static std::string operation(uint64_t hash, uint64_t bytes, uint32_t peer = 0) {
        return payload(3, {{hash, 8}, {bytes, 8}, {peer, 4}});
    }

  private:
    int64_t launch() {
        if (m_launch == 0) m_launch = text("cudaLaunchKernel_v7000");
        return m_launch;
    }
    std::filesystem::path m_file;
    Database m_database;
    int64_t m_texts = 0, m_correlation = 0, m_launch = 0;
};

class NsysReader : public testing::Test {
  protected:
    Database import(const std::vector<std::filesystem::path>& files) {
        m_result = importRun(files, m_folder / "run");
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    std::string errorOf(const std::filesystem::path& file) {
        try {
            importRun({file}, m_folder / "run");
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    std::filesystem::path make(const std::string& name, const std::function<void(Report&)>& fill) {
        Report report(m_folder / name);
        fill(report);
        return report.file();
    }

    tests::TraceFolder m_folder;
    ImportResult m_result;
};

/// Two ranks of a job of four, which was numbered the other way round than its devices.
void fillTwoRanks(Report& report) {
    const int64_t gemm = report.text("gemm"), nccl = report.text("ncclDevKernel_AllReduce_Sum_f32_RING_LL()"),
                  messages = report.text("ncclDevKernel_SendRecv()");
    for (const int64_t pid : {500, 600}) {
        const uint32_t rank = pid == 500 ? 3 : 2;
        report.range(pid, 10'000, 40'000, "step 0");
        report.nccl(pid, 6000, "ncclCommInitRankConfig", Report::init(0xfeed, 4, rank));
        report.nccl(pid, 6010, "ncclCommInitRank", Report::init(0xbeef, 2, rank - 2));
        report.kernel(pid, 10'100, gemm);
        report.nccl(pid, 11'900, "ncclGroupStart");
        report.nccl(pid, 11'910, "ncclAllReduce", Report::operation(0xfeed, 4096));
        report.nccl(pid, 11'960, "ncclGroupEnd");
        report.kernel(pid, 12'012, nccl, 20);
        report.nccl(pid, 13'900, "ncclGroupStart");
        report.nccl(pid, 13'910, "ncclSend", Report::operation(0xbeef, 1024, 3 - rank));
        report.nccl(pid, 13'920, "ncclRecv", Report::operation(0xbeef, 1024, 3 - rank));
        report.range(pid, 13'940, 13'990, "ncclGroupEnd", 1);
        report.kernel(pid, 14'010, messages, 21);
    }
}

TEST_F(NsysReader, ProcessesAreRanksAndNcclTellsWhichAndWhatTheySent) {
    Database trace = import({make("job.sqlite", fillTwoRanks)});
    EXPECT_EQ(m_result.source, "nsys");
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    const auto count = [&](const std::string& what) { return trace.integer("SELECT COUNT(*) FROM " + what); };
    EXPECT_EQ(count("kernel"), 6);
    EXPECT_EQ(count("kernel WHERE nccl = 1"), 4);
    EXPECT_EQ(count("meta WHERE key = 'job_world_size' AND value = '4'"), 1);
    EXPECT_EQ(count("device WHERE name = 'NVIDIA H100 80GB HBM3' AND compute_capability = 90"), 2);
    EXPECT_EQ(count("api_call a JOIN string s ON s.id = a.name_id WHERE s.text = 'cudaLaunchKernel' AND a.kind = 1"),
              6);
    EXPECT_EQ(count("nvtx n JOIN string s ON s.id = n.name_id WHERE s.text = 'step 0'"), 2);
    EXPECT_EQ(count("nvtx"), 2);
    EXPECT_EQ(count("communicator WHERE identity = 'comm_hash'"), 2);
    EXPECT_EQ(count("collective WHERE op = 'all_reduce' AND bytes = 4096 AND members = 2"), 1);
    EXPECT_EQ(count("p2p WHERE bytes = 1024 AND complete = 1"), 2);
    EXPECT_EQ(count("p2p WHERE src_rank = 2 AND dst_rank = 3"), 1);
    // The first row is of 10,000 ns by the system's clock, 5,000 of which had gone by when the session began.
    EXPECT_EQ(trace.integer("SELECT value FROM meta WHERE key = 'start_unix_ns'"), 1779782330000000000 + 10'000 - 5000);
}

TEST_F(NsysReader, GpuMetricsAreCountersOfTheRankOnThatGpu) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        // CUDA numbers the devices of each process anew; the low byte of a type is the report's own number.
        report.database().execute(
            "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);"
            "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (7, 0, 500), (8, 1, 600);"
            "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName "
            "TEXT);"
            "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (72057594037927943, 1, 'GPU', 3, 'SMs Active [Throughput %]'),"
            " (72057594037927944, 1, 'GPU', 3, 'SMs Active [Throughput %]'), (72057594037927945, 1, 'GPU', 3, 'x');"
            "CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT);"
            "INSERT INTO GPU_METRICS VALUES (12050, 72057594037927943, 3, 91), (11000, 72057594037927943, 3, 40),"
            " (12050, 72057594037927944, 3, 17), (5, 72057594037927943, 3, 1), (12050, 72057594037927945, 3, 1),"
            " (12050, 72057594037927943, 99, 1), (12050, 72057594037927943, 3, NULL),"
            " (9223372036854775807, 72057594037927943, 3, 1), ('now', 72057594037927943, 3, 1);");
    })});
    const auto values = [&](int rank) {
        std::string text;
        store::Statement rows(trace,
                              "SELECT c.value FROM counter c JOIN string s ON s.id = c.name_id WHERE s.text = "
                              "'SMs Active [Throughput %]' AND c.rank = ?1 ORDER BY c.id");
        rows.bind(1, int64_t{rank});
        while (rows.step()) text += std::to_string(rows.integer(0)) + " ";
        return text;
    };
    EXPECT_EQ(values(3), "40 91 ") << "process 500 is rank 3; what lies before its first event is left out";
    EXPECT_EQ(values(2), "17 ");
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM counter"), 3);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE 'samples of GPU_METRICS are left out%'"), 3);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE 'rows of GPU_METRICS%'"), 2);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE message LIKE 'samples of counters from before%'"), 1);
}

TEST_F(NsysReader, CallsOfTheOperatingSystemAreKeptWhereAskedAndOnThreadsThatCallCuda) {
    const auto file = make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute("CREATE TABLE OSRT_API (start INT, end INT, globalTid INT, nameId INT);");
        const int64_t read = report.text("read");
        for (const int64_t tid : {int64_t{500}, int64_t{501}})
            store::Statement(report.database(), "INSERT INTO OSRT_API VALUES (12000, 12005, ?1, ?2)")
                .bind(1, globalTid(500, tid))
                .bind(2, read)
                .run();
    });
    for (const bool all : {false, true}) {
        ImportOptions options;
        options.allOperations = all;
        importRun({file}, m_folder / (all ? "all" : "some"), options);
        Database trace((m_folder / (all ? "all" : "some") / "trace.db").string(), OpenMode::readOnly);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nvtx n JOIN string s ON s.id = n.domain_id WHERE s.text = 'OS "
                                "runtime' AND n.dur_ns = 5"),
                  all ? 1 : 0);
        EXPECT_EQ(
            trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%OSRT_API (kept with --all-operations)'"),
            all ? 0 : 1);
    }
}

TEST_F(NsysReader, WithoutPayloadsAKernelIsACall) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute("UPDATE NVTX_EVENTS SET binaryData = NULL");
    })});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE op = 'all_reduce'"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'rank_unknown'"), 2);
}

TEST_F(NsysReader, RowsMayStandInAnyOrderAndColumnsMayBeMissing) {
    const auto file = make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute(
            "CREATE TABLE k AS SELECT start, end, deviceId, streamId, correlationId, globalPid, shortName FROM "
            "CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start DESC;"
            "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL;"
            "CREATE TABLE n AS SELECT start, end, eventType, globalTid, domainId, text, binaryData FROM NVTX_EVENTS "
            "ORDER BY start DESC;"
            "DROP TABLE NVTX_EVENTS; ALTER TABLE n RENAME TO NVTX_EVENTS;"
            "CREATE TABLE s AS SELECT id, value FROM StringIds ORDER BY id DESC;"
            "DROP TABLE StringIds; ALTER TABLE s RENAME TO StringIds;"
            "DROP TABLE TARGET_INFO_SESSION_START_TIME;");
    });
    Database trace = import({file});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM p2p WHERE complete = 1"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN string s ON s.id = k.name_id WHERE s.text = 'gemm'"),
              2);
}

TEST_F(NsysReader, AFileForEachRankIsAJob) {
    const auto one = [&](int64_t pid) {
        return make("node" + std::to_string(pid) + ".sqlite", [&](Report& report) {
            fillTwoRanks(report);
            for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"})
                report.database().execute(
                    std::string("DELETE FROM ") + table + " WHERE rowid IN (SELECT rowid FROM " + table + " WHERE " +
                    (std::strstr(table, "KERNEL") != nullptr
                         ? "globalPid"
                         : "globalTid / " + std::to_string(1 << 24) + " * " + std::to_string(1 << 24)) +
                    " <> " + std::to_string(globalTid(pid, 0)) + ")");
        });
    };
    Database trace = import({one(500), one(600)});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND members = 2"), 1);
}

TEST_F(NsysReader, RanksOfSubgroupsAreNoRanksOfTheJob) {
    const auto node = [&](const std::string& name, uint64_t hash) {
        return make(name, [&](Report& report) {
            const int64_t nccl = report.text("ncclDevKernel_AllReduce_Sum_f32_RING_LL()");
            for (const int64_t pid : {500, 600}) {
                report.nccl(pid, 6000, "ncclCommInitRank", Report::init(hash, 2, pid == 500 ? 1 : 0));
                report.nccl(pid, 11'910, "ncclAllReduce", Report::operation(hash, 4096));
                report.kernel(pid, 11'962, nccl, 20);
            }
        });
    };
    const auto first = node("a.sqlite", 0xfeed), second = node("b.sqlite", 0xbeef), again = node("c.sqlite", 0xfeed);
    Database trace = import({first, second});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'rank_unknown'"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'job_world_size'"), 0);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE members = 2"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(DISTINCT communicator_id) FROM collective"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'missing_rank'"), 0);
    import({first});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    for (const auto& files : {std::vector{first, again}, std::vector{first, second, again}}) {
        try {
            import(files);
            ADD_FAILURE() << "the same rank of the same communicator twice";
        } catch (const ImportError& error) {
            EXPECT_NE(std::string(error.what()).find("and so is"), std::string::npos) << error.what();
        }
    }
}

TEST_F(NsysReader, AProcessOfTwoDevicesIsTwoRanks) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        const std::string own = std::to_string(globalTid(500, 0)), thread = std::to_string(globalTid(500, 500));
        report.database().execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = " + own +
                                  "; UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = " + thread +
                                  "; DELETE FROM NVTX_EVENTS WHERE globalTid <> " + thread);
    })});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM api_call WHERE rank = 1"), 3);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN api_call a ON a.rank = k.rank AND a.correlation_id = "
                            "k.correlation_id WHERE k.rank = 1"),
              3);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nvtx WHERE rank = 1"), 1);
}

/// A group of all-reduces of `first` (1000 bytes) and `second` (2000), whose kernels ncclGroupEnd launches on streams.
void fillGroup(Report& report, int64_t atNs, uint64_t first, uint64_t second, std::pair<int64_t, int64_t> streams) {
    const int64_t name = report.text("ncclDevKernel_Generic()");
    report.nccl(500, atNs, "ncclGroupStart");
    report.nccl(500, atNs + 10, "ncclAllReduce", Report::operation(first, 1000));
    report.nccl(500, atNs + 20, "ncclAllReduce", Report::operation(second, 2000));
    report.range(500, atNs + 30, atNs + 90, "ncclGroupEnd", 1);
    report.kernel(500, atNs + 90, name, streams.first);
    report.kernel(500, atNs + 100, name, streams.second);
}

constexpr const char* kBytesOnStream20 =
    "SELECT n.bytes FROM nccl_call n JOIN stream s ON s.id = n.stream_id WHERE s.native_id = 20 ORDER BY n.start_ns "
    "DESC";

TEST_F(NsysReader, AGroupOfSeveralCommunicatorsLaunchesThemByTheirHashes) {
    // 0xf…f is the largest hash, though negative as a signed number.
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillGroup(report, 10'000, UINT64_MAX, 5, {20, 21});
    })});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call"), 2);
    EXPECT_EQ(trace.integer(kBytesOnStream20), 2000);
}

TEST_F(NsysReader, AGroupOfSeveralCommunicatorsFindsTheirStreams) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillGroup(report, 10'000, 5, 6, {20, 21});
        report.nccl(500, 20'000, "ncclAllReduce", Report::operation(6, 64));
        report.kernel(500, 20'052, report.text("ncclDevKernel_Generic()"), 20);
    })});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call"), 3);
    EXPECT_EQ(trace.integer(std::string("SELECT MIN(bytes) FROM (") + kBytesOnStream20 + ")"), 64);
    EXPECT_EQ(trace.integer(std::string("SELECT MAX(bytes) FROM (") + kBytesOnStream20 + ")"), 2000);
}

TEST_F(NsysReader, CommunicatorsOnOneStreamAreToldApartByTheirHashes) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillGroup(report, 10'000, 6, 5, {20, 20});
        report.nccl(500, 20'000, "ncclAllReduce", Report::operation(6, 64));
        report.kernel(500, 20'052, report.text("ncclDevKernel_Generic()"), 20);
    })});
    EXPECT_EQ(trace.integer("SELECT n.bytes FROM nccl_call n JOIN kernel k ON k.rank = n.rank AND k.id = n.kernel_id "
                            "ORDER BY k.start_ns"),
              2000);
}

TEST_F(NsysReader, ALostEndOfAGroupKeepsLaterCallsApart) {
    const auto collectives = [&](int lost) {
        Database trace = import({make("job" + std::to_string(lost) + ".sqlite", [&](Report& report) {
            fillGroup(report, 10'000, 5, 6, {20, 21});
            for (const int64_t at : {20'000, 30'000}) {
                report.nccl(500, at, "ncclAllReduce", Report::operation(5, 64));
                report.kernel(500, at + 52, report.text("ncclDevKernel_Generic()"), 20);
            }
            fillGroup(report, 40'000, 5, 6, {20, 21});
            fillGroup(report, 50'000, 5, 6, {20, 21});
            if (lost > 0)
                report.database().execute(
                    "DELETE FROM NVTX_EVENTS WHERE text = 'ncclGroupEnd' AND start IN (10030, 40030, 50030)");
            // The kernels of a group are not recorded either: the launch within the next call ends it.
            if (lost > 1) report.database().execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < 11000");
        })});
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE bytes = 64"), 2);
        EXPECT_EQ(trace.integer("SELECT COUNT(DISTINCT kernel_id) FROM nccl_call"),
                  trace.integer("SELECT COUNT(*) FROM nccl_call"));
        EXPECT_EQ(trace.integer("SELECT COALESCE(SUM(count), 0) FROM loss WHERE message LIKE '%without ncclGroupEnd%'"),
                  lost > 0 ? 3 : 0);
        return trace.integer("SELECT COUNT(*) FROM nccl_call");
    };
    EXPECT_EQ(collectives(0), 8);
    EXPECT_EQ(collectives(1), 8);
    EXPECT_EQ(collectives(2), 6);
}

TEST_F(NsysReader, AStrayKernelOnAnotherDeviceMakesNoRank) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.kernel(600, 9000, report.text("fill"), 7, 0);  // 600 computes and communicates on device 1
    })});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 6);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE severity = 'info' AND message LIKE "
                            "'rows of process 600 on other devices (0) than its own, 1,%'"),
              1);
}

TEST_F(NsysReader, WithoutCommunicationNearlyAllOfTheTimeMakesADeviceTheOnlyRank) {
    const auto ranksWith = [&](int kernels) {
        import({make("job" + std::to_string(kernels) + ".sqlite", [&](Report& report) {
            const int64_t gemm = report.text("gemm");
        for (int i = 0; i < kernels; ++i) report.kernel(500, 10'000 + i * 1000, gemm);
        report.kernel(500, 10'500, gemm, 7, 3);
        })
});
return m_result.ranks.size();
};
EXPECT_EQ(ranksWith(19), 1u);
EXPECT_EQ(ranksWith(18), 2u);
}

TEST_F(NsysReader, DevicesAndTimesThatCannotBeAreLeftOut) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        const int64_t name = report.text("far");
        report.kernel(500, 15'000, name, 7, 256);
        report.kernel(500, 15'100, name, 7, -1);
        report.kernel(500, INT64_MAX - 100, name);
        report.kernel(500, INT64_MIN + 50, name);
        report.range(500, 9'000'000'000'000'000'000, INT64_MAX, "far");
        report.range(500, 20'000, INT64_MAX, "endless");
        report.range(500, 20'000, 1000, "backwards");
        report.range(500, INT64_MAX, 20'000, "ncclAllReduce", 1, Report::operation(0xfeed, 1));
        report.range(500, 20'010, INT64_MIN, "ncclAllReduce", 1, Report::operation(0xfeed, 1));
        report.range(500, 20'020, 20'000, "ncclAllReduce", 1, Report::operation(0xfeed, 1));
        report.database().execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, globalPid) VALUES (-2305843009213693952, "
            "2305843009213693952, 0, " +
            std::to_string(globalTid(500, 0)) + ")");
    })});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 6);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE "
                            "'%KERNEL with a deviceId that no GPU has%'"),
              2);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE "
                            "'%KERNEL without a start%'"),
              3);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE '%NVTX_EVENTS%'"),
              2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nvtx n JOIN string s ON s.id = n.name_id WHERE s.text IN "
                            "('endless', 'backwards') AND n.dur_ns IS NULL"),
              2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND members = 2"), 1);
}

TEST_F(NsysReader, WorkWithoutAProcessIsOfTheOnlyOne) {
    const auto job = [&](const char* name, bool ofOne) {
        return make(name, [&](Report& report) {
            fillTwoRanks(report);
            report.database().execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL");
            if (ofOne)
                report.database().execute(
                    "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 1;"
                    "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid <> " +
                    std::to_string(globalTid(500, 500)) + "; DELETE FROM NVTX_EVENTS WHERE globalTid <> " +
                    std::to_string(globalTid(500, 500)));
        });
    };
    {
        Database trace = import({job("one.sqlite", true)});
        EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{3}));
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM api_call"), 3);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE bytes = 4096"), 1);
        EXPECT_EQ(trace.integer("SELECT pid FROM process"), 500);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'CUDA calls and NVTX ranges%'"), 0);
    }
    Database trace = import({job("two.sqlite", false)});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM api_call"), 0);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE severity = 'warning' AND message LIKE '%globalPid%'"),
              6 + 20);
}

TEST_F(NsysReader, RangesOfProcessesWithoutGpuWorkAreCounted) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.range(700, 1000, 2000, "loader");
    })});
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE severity = 'info' AND message LIKE "
                            "'%of no process with GPU work%'"),
              1);
}

TEST_F(NsysReader, AValueThatIsTooLargeIsLeftOutAlone) {
    for (const bool isKey : {true, false}) {
        Database trace = import({make(isKey ? "job.sqlite" : "nokey.sqlite", [&](Report& report) {
            report.range(500, 1000, 2000, std::string(17 << 20, 'x'));
            report.range(500, 1000, 2000, "blob", 1, std::string(17 << 20, 'x'));
            report.kernel(500, 3000, report.text(std::string(17 << 20, 'x')));
            fillTwoRanks(report);
            if (!isKey)
                report.database().execute(
                    "CREATE TABLE s AS SELECT id, value FROM StringIds; DROP TABLE StringIds;"
                    "ALTER TABLE s RENAME TO StringIds");
        })});
        EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 7);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE bytes = 4096 AND members = 2"), 1);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 0);
        EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE "
                                "'texts and blobs of NVTX_EVENTS that are too large%'"),
                  2);
        EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE "
                                "'texts of StringIds that are too large%'"),
                  1);
    }
}

TEST_F(NsysReader, NothingIsWrittenBesideAFileInWalMode) {
    std::filesystem::create_directory(m_folder / "in");
    const auto file = make("in/job %41?#.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute("PRAGMA journal_mode = WAL");
    });
    ASSERT_FALSE(std::filesystem::exists(file.string() + "-wal"));
    const auto filesBeside = [&](const std::filesystem::path& of) {
        return std::distance(std::filesystem::directory_iterator(of.parent_path()), {});
    };
    std::filesystem::create_directory(m_folder / "plain");
    std::filesystem::copy_file(file, m_folder / "plain/job.sqlite");
    Database((m_folder / "plain/job.sqlite").string(), OpenMode::readOnly).integer("SELECT COUNT(*) FROM NVTX_EVENTS");
    ASSERT_GT(filesBeside(m_folder / "plain/job.sqlite"), 1) << "a log that SQLite makes to read such a file";
    import({file});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(filesBeside(file), 1);
}

TEST_F(NsysReader, ALogBesideAFileIsRead) {
    const auto file = m_folder / "job.sqlite";
    Report report(file);
    report.database().execute("PRAGMA journal_mode = WAL");
    fillTwoRanks(report);
    ASSERT_TRUE(std::filesystem::exists(file.string() + "-wal"));
    import({file});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
}

TEST_F(NsysReader, AJournalBesideAFileIsNotPlayedBackAndThatIsTold) {
    const auto file = make("job.sqlite", [](Report& report) { fillTwoRanks(report); });
    const auto bytesOf = [](const std::filesystem::path& of) {
        std::ifstream in(of, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    // What a writer leaves that is killed: parts of its change in the file, and what they were in the journal.
    Database writer(file.string(), OpenMode::readWrite);
    writer.execute("PRAGMA cache_size = 1; BEGIN; UPDATE StringIds SET value = value || 'x'");
    for (int i = 0; i < 200; ++i)
        writer.execute("INSERT INTO StringIds SELECT 1000 + max(id), hex(zeroblob(900)) FROM StringIds");
    std::filesystem::create_directory(m_folder / "killed");
    const auto killed = m_folder / "killed/job.sqlite";
    std::filesystem::copy_file(file, killed);
    std::filesystem::copy_file(file.string() + "-journal", killed.string() + "-journal");
    std::filesystem::create_directory(m_folder / "links");
    std::filesystem::create_symlink(killed, m_folder / "links/linked.sqlite");
    const std::string before = bytesOf(killed), journal = bytesOf(killed.string() + "-journal");
    ASSERT_GT(journal.size(), 512u);
    for (const auto& named : {killed, m_folder / "links/linked.sqlite"}) {
        Database trace = import({named});
        EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity = 'error' AND message LIKE 'a journal lies "
                                "beside the database%'"),
                  1);
        EXPECT_TRUE(bytesOf(killed) == before);
        EXPECT_TRUE(bytesOf(killed.string() + "-journal") == journal);
    }
    // A writer that is done may leave a journal whose beginning is zero.
    std::filesystem::copy_file(file.string() + "-journal", m_folder / "done.sqlite-journal");
    std::fstream(m_folder / "done.sqlite-journal", std::ios::in | std::ios::out | std::ios::binary)
        .write("\0\0\0\0", 4);
    const auto done = make("done.sqlite", [](Report& report) { fillTwoRanks(report); });
    Database trace = import({done});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'a journal%'"), 0);
}

TEST_F(NsysReader, AValueOfAnySizeIsLeftOutAlone) {
    // Beyond what Rankscope reads of its own files.
    Database trace = import({make("job.sqlite", [](Report& report) {
        report.range(500, 1000, 2000, std::string(65 << 20, 'x'));
        fillTwoRanks(report);
    })});
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 0);
    EXPECT_EQ(trace.integer("SELECT SUM(count) FROM loss WHERE kind = 'bad_block' AND message LIKE "
                            "'texts and blobs of NVTX_EVENTS that are too large%'"),
              1);
}

TEST_F(NsysReader, AGraphThatWasRecordedAsAWholeIsSaidToHideItsKernels) {
    Database trace = import({make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT start + 5000 AS start, end + 5000 AS end, deviceId,"
            " contextId, streamId, correlationId, globalPid, 4 AS graphId FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1");
    })});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN string s ON s.id = k.name_id WHERE s.text = "
                            "'CUDA graph 4'"),
              1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%--cuda-graph-trace=node%'"), 1);
}

TEST_F(NsysReader, WhatIsNoReportIsToldWhatItIs) {
    const auto database = [&](const char* name, const char* sql) {
        Database((m_folder / name).string(), OpenMode::create).execute(sql);
        return m_folder / name;
    };
    EXPECT_NE(errorOf(database("photos.sqlite", "CREATE TABLE photo (id INT)")).find("no export of Nsight Systems"),
              std::string::npos);
    EXPECT_NE(errorOf(database("amd.sqlite", "CREATE TABLE rocpd_string (id INT)")).find("rocprofv3"),
              std::string::npos);
    EXPECT_NE(errorOf(database("cpu.sqlite", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)"))
                  .find("the report holds no GPU work"),
              std::string::npos);
    EXPECT_NE(errorOf(database("empty.sqlite",
                               "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                               "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT)"))
                  .find("CUPTI_ACTIVITY_KIND_KERNEL has no row"),
              std::string::npos);
    EXPECT_NE(errorOf(m_folder.write("head.sqlite", std::string("SQLite format 3\0", 16))).find("head.sqlite"),
              std::string::npos);
    import({make("job.sqlite", fillTwoRanks)});
    EXPECT_NE(errorOf(m_folder / "run/trace.db").find("a run of Rankscope itself"), std::string::npos);
}

TEST_F(NsysReader, AViewIsNotRead) {
    const auto file = make("job.sqlite", [](Report& report) {
        report.database().execute(
            "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE forever(start) AS (SELECT 1 UNION ALL SELECT "
            "start + 1 FROM forever) SELECT start, start + 1 AS end FROM forever");
    });
    EXPECT_NE(errorOf(file).find("no table of kernels"), std::string::npos);
}

TEST_F(NsysReader, CutAndDamagedFilesAreReadAsFarAsTheyGoOrRefused) {
    const auto file = make("job.sqlite", fillTwoRanks);
    std::ifstream in(file, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    size_t imported = 0, refused = 0;
    for (size_t cut = 17; cut <= whole.size(); cut += 997) {
        std::string damaged = whole.substr(0, cut);
        for (const bool flip : {false, true}) {
            if (flip)
                for (size_t at = 100 + cut % 61; at < damaged.size(); at += 509) damaged[at] ^= 0x55;
            const auto bad = m_folder.write("bad.sqlite", damaged);
            try {
                importRun({bad}, m_folder / "bad");
                ++imported;
            } catch (const ImportError& error) {
                ++refused;
                EXPECT_NE(std::string(error.what()).find("bad.sqlite"), std::string::npos);
            }
        }
    }
    EXPECT_GT(refused, 0u);
    EXPECT_GT(imported + refused, 20u);
}

TEST_F(NsysReader, AHostilePayloadIsNoPayload) {
    const auto file = make("job.sqlite", [](Report& report) {
        fillTwoRanks(report);
        report.database().execute(
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 9, 0, 18, 'NCCL communicator ID', 4000),"
            " (1, 9, 1, 18, 'Message size [bytes]', -8), (1, 9, 2, 18, 'Rank', 9223372036854775807)");
    });
    NsysDatabase database(file);
    ImportLosses losses;
    const NsysPayloads payloads(database, losses);
    EXPECT_FALSE(payloads.read(Report::payload(9, {{1, 8}})).communicator);
    EXPECT_FALSE(payloads.read("short").communicator);
    EXPECT_FALSE(payloads.read(Report::payload(77, {{1, 8}})).communicator);
    EXPECT_EQ(payloads.read(Report::operation(5, 6, 7)).peer, 7);
}

}  // namespace
}  // namespace rankscope::collector
