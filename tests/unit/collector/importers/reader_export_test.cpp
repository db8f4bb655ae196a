// SPDX-License-Identifier: Apache-2.0
// Rankscope's own exports, as far as no run writes them: of very many ranks, with rows that name nobody, with fields of
// another type. That a real export gives its run again, tests/reports holds.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "tests/unit/collector/importers/protobuf_text.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using tests::pbBytes;
using tests::pbNumber;

/// Rows "[{…},{…}]" of `count`, each made of its number.
template <typename Row>
std::string exportedRows(int count, Row row) {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "{" : ",\n{") + row(std::to_string(i)) + "}";
    return text + "]";
}

std::string exportedAbout(const std::string& tables) {
    return R"({"tool":"rankscope","run":"job","meta":{"source":"capture"},)" + tables + "}";
}

/// A rank of each number, with a stream and a thread, all on one host and in one communicator.
std::string aboutRanks(int ranks) {
    return exportedAbout(
        R"("host":[{"id":0,"name":"a"}],"rank":)" +
        exportedRows(ranks,
                     [](const std::string& i) { return R"("rank":)" + i + R"(,"host_id":0,"device_id":)" + i; }) +
        R"(,"device":)" +
        exportedRows(ranks, [](const std::string& i) { return R"("id":)" + i + R"(,"host_id":0,"ordinal":)" + i; }) +
        R"(,"stream":)" +
        exportedRows(ranks,
                     [](const std::string& i) {
                         return R"("id":)" + i + R"(,"rank":)" + i + R"(,"device_id":)" + i +
                                R"(,"context":1,"native_id":7)";
                     }) +
        R"(,"thread":)" +
        exportedRows(ranks, [](const std::string& i) { return R"("id":)" + i + R"(,"rank":)" + i + R"(,"tid":5)"; }) +
        R"(,"communicator":[{"id":1,"hash":77,"identity":"comm_hash","n_ranks":)" + std::to_string(ranks) +
        R"(}],"communicator_member":)" + exportedRows(ranks, [](const std::string& i) {
            return R"("communicator_id":1,"comm_rank":)" + i + R"(,"rank":)" + i;
        }));
}

std::string exportedKernel(int64_t rank, int64_t stream) {
    return R"({"name":"gemm","ph":"X","pid":)" + std::to_string(rank) +
           R"(,"tid":1,"cat":"kernel","ts":1,"dur":2,"args":{"stream_id":)" + std::to_string(stream) +
           R"(,"nccl":0,"kernel_id":1}})";
}

std::string exportedFile(const std::string& about, const std::string& events) {
    return R"({"otherData":)" + about + ",\n\"traceEvents\":[\n" + events + "\n]}\n";
}

class ExportReader : public testing::Test {
  protected:
    std::vector<FileRank> read(const std::string& text, const char* name = "job.json") {
        std::vector<FileRank> ranks;
        kExportReader.read(m_folder.write(name, text), {}, [&](FileRank rank) { ranks.push_back(std::move(rank)); });
        return ranks;
    }
    static int64_t lossOf(const FileRank& rank, std::string_view start) {
        for (const ImportLoss& loss : rank.losses.all())
            if (loss.message.starts_with(start)) return loss.count;
        return 0;
    }
    tests::TraceFolder m_folder;
};

TEST_F(ExportReader, EachOfAHundredThousandRanksFindsItsOwnRows) {
    constexpr int kRanks = 100'000;  // were each to search all rows, this would take hours
    std::string events;
    for (int rank = 0; rank < kRanks; ++rank)
        events += R"({"name":"process_name","ph":"M","pid":)" + std::to_string(rank) + "},\n";
    const auto ranks = read(exportedFile(aboutRanks(kRanks), events + exportedKernel(99'999, 99'999)));
    ASSERT_EQ(ranks.size(), size_t{kRanks});
    const RankRecording& last = ranks.back().recording;
    EXPECT_EQ(last.kernels.size(), 1u);
    EXPECT_EQ(last.device, 99'999);
    ASSERT_EQ(last.streams.size(), 1u);
    EXPECT_EQ(last.streams[0].device, 99'999);
    EXPECT_EQ(last.threads.size(), 1u);
    ASSERT_EQ(last.communicators.size(), 1u);
    EXPECT_EQ(last.communicators[0].commRank, 99'999);
    EXPECT_EQ(ranks.front().recording.devices.size(), size_t{kRanks}) << "a host's devices are told by its first rank";
    EXPECT_EQ(last.devices.size(), 1u);
}

TEST_F(ExportReader, EventsOfRanksAndStreamsThatItDoesNotNameAreLeftOut) {
    const auto ranks = read(exportedFile(aboutRanks(2), exportedKernel(1, 1) + "," + exportedKernel(1, 0) + "," +
                                                            exportedKernel(2, 1) + "," + exportedKernel(-1, 1)));
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 1u);
    EXPECT_EQ(lossOf(ranks[0], "events are left out whose times or arguments"), 3);
}

TEST_F(ExportReader, EventsWithoutAnEndCostTheirLinesAndNoMore) {
    constexpr int kDamaged = 100'000;  // were the end of each looked for in all that follows, this would take hours
    std::string events;
    for (int i = 0; i < kDamaged; ++i)
        events += i % 2 == 0 ? R"({"name":"gemm,"ph":"X","pid":0,"args":{"x":1}},)"
                               "\n"
                             : R"({"name":"gemm","ph":"X","pid":0,"args":{"x":1},)"
                               "\n";
    const auto ranks = read(exportedFile(aboutRanks(1), events + exportedKernel(0, 0)));
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 1u);
    EXPECT_EQ(lossOf(ranks[0], "lines that are damaged are left out"), kDamaged);
}

TEST_F(ExportReader, AThreadOfNoRankIsOfThoseThatNameIt) {
    const std::string about =
        exportedAbout(R"("rank":[{"rank":0},{"rank":1}],"thread":[{"id":1,"tid":50},{"id":2,"tid":51}])");
    const auto call = [](int rank, int thread) {
        return R"({"name":"cudaFree","ph":"X","pid":)" + std::to_string(rank) +
               R"(,"tid":1,"cat":"api_call","ts":1,"dur":2,"args":{"thread_id":)" + std::to_string(thread) + "}}";
    };
    const auto ranks = read(exportedFile(about, call(0, 2) + "," + call(1, 1) + "," + call(1, 2) + "," + call(1, 9)));
    ASSERT_EQ(ranks.size(), 2u);
    ASSERT_EQ(ranks[0].recording.threads.size(), 1u);
    EXPECT_EQ(ranks[0].recording.threads[0].tid, 51);
    EXPECT_EQ(ranks[1].recording.threads.size(), 2u);
    EXPECT_EQ(ranks[1].recording.apiCalls.size(), 2u);
}

TEST_F(ExportReader, MoreRanksThanAnyJobHasAreRefused) {
    try {
        read(exportedFile(aboutRanks(300'000), exportedKernel(0, 0)));
        FAIL();
    } catch (const ImportError& error) {
        EXPECT_NE(std::string(error.what()).find("tells of 300000 ranks"), std::string::npos) << error.what();
    }
}

/// Packets of a Perfetto trace: what is told of the run, a process with a track, and a kernel on it.
std::string perfettoExport(const std::string& kernelName, const std::string& furtherPackets) {
    const auto packet = [](const std::string& fields) { return pbBytes(1, fields); };
    const auto interned = [&packet](int field, int id, const std::string& text) {
        return packet(pbBytes(12, pbBytes(field, pbNumber(1, id) + pbBytes(2, text))));
    };
    return packet(pbBytes(5, pbBytes(2, pbBytes(1, "rankscope_run") + pbBytes(2, aboutRanks(1))))) +
           packet(pbBytes(60, pbNumber(1, 9) + pbBytes(3, pbNumber(1, 1)))) + interned(1, 1, "kernel") +
           interned(2, 1, kernelName) + interned(3, 1, "stream_id") + interned(3, 2, "nccl") +
           packet(pbNumber(8, 1000) + pbBytes(11, pbNumber(3, 1) + pbNumber(9, 1) + pbNumber(10, 1) + pbNumber(11, 9) +
                                                      pbBytes(4, pbNumber(1, 1) + pbNumber(4, 0)) +
                                                      pbBytes(4, pbNumber(1, 2) + pbNumber(4, 0)))) +
           packet(pbNumber(8, 3000) + pbBytes(11, pbNumber(9, 2) + pbNumber(11, 9))) + furtherPackets;
}

TEST_F(ExportReader, FieldsOfAnotherTypeAreNotRead) {
    // Each of these is a text where a number stands, or the other way round.
    std::string wrong;
    for (const uint32_t field : {5u, 11u, 12u, 60u}) wrong += pbBytes(1, pbNumber(field, 300));
    wrong += pbBytes(1, pbBytes(8, "time"));
    for (const uint32_t field : {3u, 9u, 10u, 11u, 30u}) wrong += pbBytes(1, pbBytes(11, pbBytes(field, "ab")));
    wrong += pbBytes(1, pbBytes(11, pbNumber(4, 7)));
    for (const uint32_t field : {1u, 5u}) wrong += pbBytes(1, pbBytes(60, pbBytes(field, "ab")));
    for (const uint32_t field : {2u, 3u, 8u}) wrong += pbBytes(1, pbBytes(60, pbNumber(field, 70)));
    for (const uint32_t field : {1u, 2u, 3u}) wrong += pbBytes(1, pbBytes(12, pbNumber(field, 70)));
    wrong += pbBytes(1, pbBytes(12, pbBytes(2, pbBytes(1, "id") + pbNumber(2, 3))));
    const auto ranks = read(perfettoExport("gemm", wrong), "job.pftrace");
    ASSERT_EQ(ranks.size(), 1u);
    ASSERT_EQ(ranks[0].recording.kernels.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels[0].durNs, 2000);
}

TEST_F(ExportReader, VeryLongNamesAreCutAndThatIsTold) {
    const auto ranks = read(perfettoExport(std::string(5000, 'g'), ""), "job.pftrace");
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.strings[ranks[0].recording.kernels.at(0).nameId].size(), 4096u);
    EXPECT_EQ(lossOf(ranks[0], "names are cut"), 1);
}

}  // namespace
}  // namespace rankscope::collector
