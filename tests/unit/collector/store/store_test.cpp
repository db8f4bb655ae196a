// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>

#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/store/schema.h"
#include "collector/store/tables.h"
#include "collector/store/whole_file.h"
#include "collector/store/writer.h"
#include "tests/unit/collector/capture_file.h"

namespace rankscope::store {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

Kernel kernelAt(int64_t id, int32_t rank, int64_t startNs, int64_t durNs, int32_t nameId) {
    Kernel kernel;
    kernel.id = id;
    kernel.rank = rank;
    kernel.streamId = 1;
    kernel.startNs = startNs;
    kernel.durNs = durNs;
    kernel.nameId = nameId;
    return kernel;
}

/// Three kernels of rank 0, one of rank 1.
void writeSmallTrace(const fs::path& file) {
    TraceWriter writer(file);
    const int32_t name = writer.intern("gemm");
    writer.write(Rank{0});
    writer.write(Rank{1});
    writer.write(Stream{1, 0});
    const std::vector<Kernel> first = {kernelAt(1, 0, 100, 50, name), kernelAt(2, 0, 200, 500, name),
                                       kernelAt(3, 0, 900, 10, name)};
    writer.write(std::span<const Kernel>(first));
    writer.write(kernelAt(4, 1, 100, 5, name));
    writer.setMeta("run_name", "small");
    writer.setMeta("world_size", "2");
    writer.finish();
}

std::vector<int64_t> idsIn(TraceReader& trace, int32_t rank, int64_t fromNs, int64_t toNs) {
    std::vector<int64_t> ids;
    auto rows = trace.cursor<Kernel>(rank, fromNs, toNs);
    for (Kernel row; rows.next(row);) ids.push_back(row.id);
    return ids;
}

TEST(Store, ReadsBackWhatWasWrittenRankByRank) {
    const TemporaryFolder folder;
    writeSmallTrace(folder.path() / "trace.db");
    TraceReader trace(folder.path());
    std::vector<int64_t> starts;
    trace.forEach<Kernel>(0, [&](const Kernel& kernel) {
        starts.push_back(kernel.startNs);
        EXPECT_EQ(trace.string(kernel.nameId), "gemm");
        EXPECT_FALSE(kernel.correlationId);
    });
    EXPECT_EQ(starts, (std::vector<int64_t>{100, 200, 900}));
    EXPECT_EQ(trace.extent<Kernel>(1).count(), 1);
    EXPECT_TRUE(trace.extent<Kernel>(7).empty());
    EXPECT_EQ(trace.metaInteger("world_size", 0), 2);
    EXPECT_EQ(trace.meta("absent", "fallback"), "fallback");
    EXPECT_EQ(trace.strings().at(1), "gemm");
}

TEST(Store, AWindowHoldsWhatOverlapsItHoweverLongAgoItBegan) {
    const TemporaryFolder folder;
    writeSmallTrace(folder.path() / "trace.db");
    TraceReader trace(folder.path());
    EXPECT_EQ(idsIn(trace, 0, 600, 800), (std::vector<int64_t>{2}));
    EXPECT_EQ(idsIn(trace, 0, 140, 201), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(idsIn(trace, 0, 700, 900), std::vector<int64_t>{});
    EXPECT_EQ(idsIn(trace, 0, 0, 5'000).size(), 3u);
    EXPECT_EQ(idsIn(trace, 5, 0, 5'000).size(), 0u);
}

TEST(Store, AcceptsARunDirectoryAFileAndANameAlike) {
    const TemporaryFolder folder;
    writeSmallTrace(folder.path() / "trace.db");
    EXPECT_EQ(TraceReader(folder.path()).meta("run_name", ""), "small");
    EXPECT_EQ(TraceReader(folder.path() / "trace.db").meta("run_name", ""), "small");
    EXPECT_EQ(TraceReader::databasePath("name"), fs::path("name/trace.db"));
}

/// Values at both sides of every width that SQLite's record format has.
std::vector<int64_t> widthEdges() {
    std::vector<int64_t> edges = {0, 1, 2, -1, -2, INT64_MAX, INT64_MIN};
    for (const int bits : {7, 8, 15, 16, 23, 24, 31, 32, 39, 47, 48, 55}) {
        for (const int64_t near : {-1, 0, 1}) {
            edges.push_back((int64_t{1} << bits) + near);
            edges.push_back(-(int64_t{1} << bits) + near);
        }
    }
    return edges;
}

std::string integrityOf(TraceReader& trace) {
    Statement check(trace.database(), "PRAGMA integrity_check");
    return check.step() ? std::string(check.text(0)) : "no answer";
}

TEST(Store, NumbersOfEveryWidthAndEveryWordComeBack) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    const std::vector<int64_t> edges = widthEdges();
    {
        TraceWriter writer(file);
        writer.write(Rank{0});
        int64_t id = 1;
        for (const int64_t edge : edges) {
            NcclCall call;
            call.id = id;
            call.startNs = edge;
            call.durNs = edge / -2;
            call.op = static_cast<Op>(id % 11);
            call.algorithm = static_cast<Algorithm>(id % 8);
            call.protocol = static_cast<Protocol>(id % 4);
            call.dataType = static_cast<DataType>(id % 13);
            if (id % 3 == 0) call.seq = edge;
            writer.write(call);
            id += id < 20 ? 1 : 1'000'000'007;
        }
        writer.finish();
    }
    TraceReader trace(file);
    EXPECT_EQ(integrityOf(trace), "ok");
    size_t i = 0;
    // Times are cut to what sums of them can hold, whatever a file says.
    const auto kept = [](int64_t ns) { return std::clamp(ns, -(int64_t{1} << 53), int64_t{1} << 53); };
    trace.forEach<NcclCall>(0, [&](const NcclCall& call) {
        EXPECT_EQ(call.startNs, kept(edges[i]));
        EXPECT_EQ(call.durNs, kept(edges[i] / -2));
        EXPECT_EQ(call.op, static_cast<Op>(call.id % 11));
        EXPECT_EQ(call.algorithm, static_cast<Algorithm>(call.id % 8));
        EXPECT_EQ(call.protocol, static_cast<Protocol>(call.id % 4));
        EXPECT_EQ(call.dataType, static_cast<DataType>(call.id % 13));
        EXPECT_EQ(call.seq, call.id % 3 == 0 ? std::optional(edges[i]) : std::nullopt);
        ++i;
    });
    EXPECT_EQ(i, edges.size());
}

/// Wide rows, written in spans that end anywhere, with rows of a small table in between.
void writeManyKernels(const fs::path& file, int64_t count) {
    TraceWriter writer(file);
    writer.write(Rank{0});
    std::vector<Kernel> rows;
    for (int64_t id = 1; id <= count; ++id) {
        rows.push_back(kernelAt(id, 0, INT64_MAX - count + id, INT64_MAX / 2, INT32_MAX));
        rows.back().graphNode = INT64_MIN + id;
        rows.back().correlationId = UINT32_MAX;
        if (id % 9'973 != 0) continue;
        writer.write(std::span<const Kernel>(rows));
        rows.clear();
        writer.write(Stream{id, 0});
    }
    writer.write(std::span<const Kernel>(rows));
    writer.finish();
}

TEST(Store, TablesOfOneLeafOfTwoLevelsAndOfThreeAreWhatSqliteExpects) {
    for (const int64_t count : {int64_t{1}, int64_t{3'000}, int64_t{400'000}}) {
        const TemporaryFolder folder;
        writeManyKernels(folder.path() / "trace.db", count);
        TraceReader trace(folder.path(), {}, MisplacedRows::kept);  // its kernels have no names
        EXPECT_EQ(integrityOf(trace), "ok") << count;
        EXPECT_EQ(trace.database().integer("SELECT count(*) FROM kernel"), count);
        EXPECT_EQ(trace.database().integer("SELECT count(*) FROM stream"), count / 9'973);
        for (const int64_t id : {int64_t{1}, count / 2 + 1, count}) {
            Kernel kernel;
            ASSERT_TRUE(trace.find(id, kernel)) << id;
            EXPECT_EQ(kernel.graphNode, INT64_MIN + id);
        }
        Kernel kernel;
        EXPECT_FALSE(trace.find(count + 1, kernel));
    }
}

TEST(Store, AFinishedTraceTakesFurtherRowsFromSqlite) {
    const TemporaryFolder folder;
    writeManyKernels(folder.path() / "trace.db", 3'000);
    {
        Database database((folder.path() / "trace.db").string(), OpenMode::readWrite);
        database.execute(
            "DELETE FROM kernel WHERE id % 2 = 0; INSERT INTO kernel(rank, stream_id, start_ns, dur_ns, name_id, nccl) "
            "SELECT 1, 1, id, 1, 1, 0 FROM kernel; VACUUM");
    }
    TraceReader trace(folder.path(), {}, MisplacedRows::kept);
    EXPECT_EQ(integrityOf(trace), "ok");
    EXPECT_EQ(trace.database().integer("SELECT count(*) FROM kernel"), 3'000);
}

TEST(Store, IdsThatDoNotGrowAreRefused) {
    const TemporaryFolder folder;
    TraceWriter writer(folder.path() / "trace.db");
    writer.write(kernelAt(2, 0, 100, 50, 1));
    EXPECT_THROW(writer.write(kernelAt(2, 0, 100, 50, 1)), Error);
    EXPECT_THROW(writer.write(kernelAt(1, 0, 100, 50, 1)), Error);
}

TEST(Store, NothingIsLeftOfATraceThatWasNotFinished) {
    const TemporaryFolder folder;
    { TraceWriter writer(folder.path() / "trace.db"); }
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Store, AFinishedTraceReplacesTheOldOneAsAWhole) {
    const TemporaryFolder folder;
    writeSmallTrace(folder.path() / "trace.db");
    {
        TraceWriter writer(folder.path() / "trace.db");
        writer.write(Rank{0});
    }
    EXPECT_EQ(TraceReader(folder.path()).all<Rank>().size(), 2u);
    writeSmallTrace(folder.path() / "trace.db");
    EXPECT_EQ(TraceReader(folder.path()).all<Rank>().size(), 2u);
}

std::string errorOf(const fs::path& run) {
    try {
        TraceReader trace(run);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(Store, SaysWhyAFileIsNoTrace) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    EXPECT_NE(errorOf(file).find("no such file"), std::string::npos);
    std::ofstream(file) << "";
    EXPECT_NE(errorOf(file).find("empty"), std::string::npos);
    std::ofstream(file) << std::string(5'000, 'x');
    EXPECT_NE(errorOf(file).find("not a readable trace.db"), std::string::npos);
    std::ofstream(file) << "x";
    EXPECT_NE(errorOf(file).find("not a readable trace.db"), std::string::npos);
    fs::remove(file);
    Database(file.string(), OpenMode::create)
        .execute("CREATE TABLE t(a); CREATE TABLE extent(a); CREATE TABLE meta(a)");
    EXPECT_NE(errorOf(file).find("no trace.db of Rankscope"), std::string::npos);
}

TEST(Store, WhatATraceLacksIsNamed) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    for (const auto& [damage, said] :
         {std::pair{"DROP TABLE kernel", "not a whole trace.db: table kernel is missing"},
          std::pair{"DROP TABLE finding", "not a whole trace.db: table finding is missing"},
          std::pair{"ALTER TABLE step RENAME COLUMN dur_ns TO other",
                    "not a whole trace.db: column dur_ns of table step is missing"}}) {
        fs::remove(file);
        writeSmallTrace(file);
        EXPECT_EQ(errorOf(file), "");
        Database(file.string(), OpenMode::readWrite).execute(std::string("PRAGMA foreign_keys = OFF; ") + damage);
        EXPECT_EQ(errorOf(file),
                  file.string() + ": " + said + " (make it again with `rankscope collect` or `rankscope import`)");
    }
}

TEST(Store, RowsThatBelongToNoRankOrTwoOrAreNotThereAreRefused) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    for (const auto& [damage, said] :
         {std::pair{"DELETE FROM extent", "table extent gives some events to no rank (kernel)"},
          std::pair{"DELETE FROM extent WHERE rank = 0", "table extent gives some events to no rank (kernel)"},
          std::pair{"UPDATE extent SET last_id = last_id - 1 WHERE rank = 0",
                    "table extent gives some events to no rank (kernel)"},
          std::pair{"UPDATE extent SET last_id = last_id + 1 WHERE rank = 0",
                    "table extent gives some events to two ranks (kernel)"},
          std::pair{"UPDATE extent SET last_id = last_id + 1 WHERE rank = 1",
                    "events that table extent promises are missing, or are another rank's (kernel)"},
          std::pair{"DELETE FROM kernel WHERE rank = 1",
                    "events that table extent promises are missing, or are another rank's (kernel)"},
          std::pair{"UPDATE kernel SET rank = 0",
                    "events that table extent promises are missing, or are another rank's (kernel)"},
          std::pair{"DELETE FROM rank WHERE rank = 1",
                    "there are events of 1 rank that table rank does not list (kernel)"}}) {
        fs::remove(file);
        writeSmallTrace(file);
        Database(file.string(), OpenMode::readWrite).execute(std::string("PRAGMA foreign_keys = OFF; ") + damage);
        EXPECT_EQ(errorOf(file), file.string() + ": damaged: " + said +
                                     " (make it again with `rankscope collect` or `rankscope import`)")
            << damage;
        EXPECT_NO_THROW(TraceReader(file, {}, MisplacedRows::kept)) << damage;
    }
}

TEST(Store, ATraceWithoutEventsIsRead) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    Database(file.string(), OpenMode::readWrite)
        .execute("PRAGMA foreign_keys = OFF; DELETE FROM kernel; DELETE FROM extent");
    EXPECT_EQ(errorOf(file), "");
}

TEST(Store, ATraceThatIsCutOffInItsLastPageIsRefused) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    fs::resize_file(file, fs::file_size(file) - 1);
    EXPECT_NE(errorOf(file).find("cut off"), std::string::npos);
}

TEST(Store, ALockedTraceIsWaitedForAsLongAsAsked) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    Database writer(file.string(), OpenMode::readWrite);
    writer.execute("BEGIN EXCLUSIVE");
    int asked = 0;
    EXPECT_THROW(TraceReader(file, [&](std::chrono::milliseconds) { return ++asked < 3; }), LockedFile);
    EXPECT_EQ(asked, 3);
    TraceReader(file, [&](std::chrono::milliseconds) {
        writer.execute("COMMIT");
        return true;
    });
}

TEST(Store, RowsOfAWrongTypeAreCounted) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    Database database(file.string(), OpenMode::readWrite);
    EXPECT_EQ(rowsOfWrongType(database, "rank"), 0);
    database.execute("UPDATE rank SET local_rank = 'first' WHERE rank = 0");
    EXPECT_EQ(rowsOfWrongType(database, "rank"), 1);
}

TEST(Store, ATraceOfAnotherVersionIsRefusedByItsNumber) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    Database(file.string(), OpenMode::readWrite).execute("PRAGMA user_version = 99");
    EXPECT_NE(errorOf(file).find("version 99"), std::string::npos);
}

TEST(Store, ATraceFromBeforeTheProxyTableIsRead) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    EXPECT_TRUE(TraceReader(file).hasTable("proxy_op"));
    Database(file.string(), OpenMode::readWrite).execute("DROP TABLE proxy_op");
    TraceReader trace(file);
    EXPECT_FALSE(trace.hasTable("proxy_op"));
    EXPECT_TRUE(trace.extent<ProxyOp>(0).empty());
}

TEST(Store, MachineLinksAreReadAsWritten) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    TraceWriter writer(file);
    writer.write(Host{0, "node0", {}});
    writer.write(MachineLink{1, 0, {}, "ethernet", "eth0", 1, {}, {}, "sysfs"});
    writer.write(MachineLink{2, 0, 3, "nvlink", "NVLink", 18, 4, 450'000'000'000, "nvml"});
    writer.finish();
    const auto links = TraceReader(file).all<MachineLink>();
    ASSERT_EQ(links.size(), 2u);
    EXPECT_EQ(links[0].kind, "ethernet");
    EXPECT_FALSE(links[0].rank || links[0].generation || links[0].bytesPerS);
    EXPECT_EQ(links[1].rank, 3);
    EXPECT_EQ(links[1].count, 18);
    EXPECT_EQ(links[1].generation, 4);
    EXPECT_EQ(links[1].bytesPerS, 450'000'000'000);
    EXPECT_EQ(links[1].source, "nvml");
}

TEST(Store, ATraceFromBeforeTheLinkTableHasNoLinks) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    Database(file.string(), OpenMode::readWrite).execute("DROP TABLE machine_link");
    TraceReader trace(file);
    EXPECT_FALSE(trace.hasTable("machine_link"));
    EXPECT_TRUE(trace.all<MachineLink>().empty());
}

TEST(Store, ATruncatedTraceIsAnErrorAndNoCrash) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    writeSmallTrace(file);
    for (auto size = fs::file_size(file) - 1; size > 0; size = size * 3 / 4) {
        fs::resize_file(file, size);
        try {
            TraceReader trace(file);
            trace.forEach<Kernel>(0, [](const Kernel&) {});
            trace.all<Loss>();
        } catch (const Error&) {
        }
    }
    EXPECT_FALSE(errorOf(file).empty());
}

template <typename Row>
void expectColumns(Database& database) {
    std::vector<std::string> written;
    std::apply([&](const auto&... column) { (written.emplace_back(column.name), ...); }, Table<Row>::kColumns);
    std::vector<std::string> declared;
    Statement columns(database, std::string("SELECT name FROM pragma_table_info('") + tableName<Row>() + "')");
    while (columns.step()) declared.emplace_back(columns.text(0));
    EXPECT_EQ(written, declared) << tableName<Row>();
}

TEST(Store, StructsHaveTheColumnsOfTheSchemaInItsOrder) {
    Database database(":memory:", OpenMode::create);
    database.execute(std::string(schemaSql()));
    EXPECT_EQ(database.integer("PRAGMA user_version"), kSchemaVersion);
    expectColumns<Host>(database);
    expectColumns<ClockModel>(database);
    expectColumns<Process>(database);
    expectColumns<Rank>(database);
    expectColumns<Device>(database);
    expectColumns<MachineLink>(database);
    expectColumns<Thread>(database);
    expectColumns<Stream>(database);
    expectColumns<Communicator>(database);
    expectColumns<CommunicatorMember>(database);
    expectColumns<Kernel>(database);
    expectColumns<Memcpy>(database);
    expectColumns<Memset>(database);
    expectColumns<ApiCall>(database);
    expectColumns<Synchronization>(database);
    expectColumns<CudaEvent>(database);
    expectColumns<Allocation>(database);
    expectColumns<ThreadStack>(database);
    expectColumns<DeviceHealth>(database);
    expectColumns<PortCounter>(database);
    expectColumns<FailedAllocation>(database);
    expectColumns<RecorderCall>(database);
    expectColumns<RecorderGroup>(database);
    expectColumns<NvtxRange>(database);
    expectColumns<NcclCall>(database);
    expectColumns<ProxyOp>(database);
    expectColumns<Counter>(database);
    expectColumns<Collective>(database);
    expectColumns<CollectiveMember>(database);
    expectColumns<P2p>(database);
    expectColumns<Step>(database);
    expectColumns<Loss>(database);
    expectColumns<SourceStatus>(database);
    expectColumns<Extent>(database);
}

TEST(Store, NsightViewsAnswerNsightQueries) {
    const TemporaryFolder folder;
    writeSmallTrace(folder.path() / "trace.db");
    Database sql((folder.path() / "trace.db").string(),
                 OpenMode::create);  // as any program opens it: views of a file are closed to our readers
    EXPECT_EQ(sql.integer("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
                          "WHERE s.value = 'gemm'"),
              4);
    for (const char* view : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_RUNTIME",
                             "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS"}) {
        EXPECT_EQ(sql.integer(std::string("SELECT count(*) FROM ") + view), 0) << view;
    }
}

TEST(Store, NsightViewsNameKernelsInAllThreeWays) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "trace.db";
    const std::vector<std::array<std::string, 3>> names = {
        // mangled, demangled, short
        {"_ZN3foo4gemmIfEEvPT_", "void foo::gemm<float>(float*)", "gemm"},
        {"_ZN12_GLOBAL__N_13addEii", "(anonymous namespace)::add(int, int)", "add"},
        {"void at::native::fill<4, std::vector<int> >(int, float)",
         "void at::native::fill<4, std::vector<int> >(int, float)", "fill"},
        {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllGather_RING_LL"},
        {"gemm", "gemm", "gemm"},
        {"_Znot a name", "_Znot a name", "_Znot a name"},
    };
    {
        TraceWriter writer(file);
        writer.write(Rank{0});
        writer.write(Stream{1, 0});
        for (size_t i = 0; i < names.size(); ++i)
            writer.write(
                kernelAt(static_cast<int64_t>(i) + 1, 0, static_cast<int64_t>(i), 1, writer.intern(names[i][0])));
        writer.finish();
    }
    EXPECT_NO_THROW(TraceReader{file});
    Database sql(file.string(), OpenMode::create);
    Statement rows(
        sql,
        "SELECT m.value, d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds m ON m.id = k.mangledName "
        "JOIN StringIds d ON d.id = k.demangledName JOIN StringIds s ON s.id = k.shortName ORDER BY k.start");
    for (const auto& name : names) {
        ASSERT_TRUE(rows.step());
        EXPECT_EQ((std::array<std::string, 3>{std::string(rows.text(0)), std::string(rows.text(1)),
                                              std::string(rows.text(2))}),
                  name);
    }
    EXPECT_FALSE(rows.step());
}

TEST(Store, TextsThatAreNoUtf8AreRepaired) {
    EXPECT_EQ(cleanUtf8("plain"), "plain");
    EXPECT_EQ(cleanUtf8("\xc3\xa9"), "\xc3\xa9");
    EXPECT_EQ(cleanUtf8("a\xff"), "a\xef\xbf\xbd");
    EXPECT_EQ(cleanUtf8(std::string_view("a\0b", 3)), "a b");
    EXPECT_EQ(cleanUtf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    EXPECT_EQ(cleanUtf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace rankscope::store
