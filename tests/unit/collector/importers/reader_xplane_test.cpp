// SPDX-License-Identifier: Apache-2.0
// Recordings of XLA's profiler: what becomes of a small one of two GPUs, of one of TPUs, of damaged and empty ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/protobuf_text.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

using tests::pbBytes;
using tests::pbNumber;

/// A plane under construction: names of events and stats get their numbers as they are used.
class PlaneMaker {
  public:
    explicit PlaneMaker(std::string name) : m_name(std::move(name)) {}

    std::string stat(const std::string& name, int64_t value) {
        return pbNumber(1, numberOf(m_stats, name)) + pbNumber(4, value);
    }
    std::string stat(const std::string& name, const std::string& value) {
        return pbNumber(1, numberOf(m_stats, name)) + pbBytes(5, value);
    }
    std::string event(const std::string& name, int64_t startNs, int64_t durNs,
                      const std::vector<std::string>& stats = {}) {
        std::string bytes =
            pbNumber(1, numberOf(m_events, name)) + pbNumber(2, startNs * 1000) + pbNumber(3, durNs * 1000);
        for (const std::string& one : stats) bytes += pbBytes(4, one);
        return bytes;
    }
    void line(int64_t id, const std::string& name, const std::vector<std::string>& events, int64_t timestampNs = 1000) {
        m_lines += pbBytes(3, pbNumber(1, id) + pbBytes(2, name) + pbNumber(3, timestampNs) + joined(events));
    }
    void about(const std::string& stat) { m_own += pbBytes(6, stat); }

    std::string plane() const {
        std::string bytes = pbNumber(1, 1) + pbBytes(2, m_name) + m_lines;
        for (const auto& [field, names] : {std::pair(4u, &m_events), std::pair(5u, &m_stats)})
            for (const auto& [name, number] : *names)
                bytes += pbBytes(field, pbNumber(1, number) + pbBytes(2, pbNumber(1, number) + pbBytes(2, name)));
        return pbBytes(1, bytes + m_own);
    }

  private:
    static int64_t numberOf(std::map<std::string, int64_t>& names, const std::string& name) {
        return names.try_emplace(name, static_cast<int64_t>(names.size()) + 1).first->second;
    }
    static std::string joined(const std::vector<std::string>& events) {
        std::string bytes;
        for (const std::string& event : events) bytes += pbBytes(4, event);
        return bytes;
    }
    std::string m_name, m_lines, m_own;
    std::map<std::string, int64_t> m_events, m_stats;
};

/// A process with two GPUs: on each a fusion, an all-reduce and a copy; a step of the host's, and calls of the driver.
std::string twoGpus() {
    std::string space;
    for (int64_t gpu : {0, 1}) {
        PlaneMaker plane("/device:GPU:" + std::to_string(gpu));
        const int64_t first = 10 * (gpu + 1);
        plane.line(13, "Stream #13(Compute)",
                   {plane.event("loop_fusion", 2000, 900,
                                {plane.stat("correlation_id", first), plane.stat("hlo_op", "fusion.1"),
                                 plane.stat("kernel_details", "regs:32 grid:160,2,1 block:128,1,1 occ_pct:100")})});
        plane.line(14, "Stream #14(Collectives)",
                   {plane.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3000 + 200 * gpu, 1000 - 200 * gpu,
                                {plane.stat("hlo_op", "all-reduce-start.3")}),
                    plane.event("ncclDevKernel_SendRecv", 5000, 500, {plane.stat("hlo_op", "all-to-all.7")})});
        plane.line(
            15, "Stream #15(MemcpyH2D)",
            {plane.event("MemcpyH2D", 1500, 100,
                         {plane.stat("memcpy_details", "kind_src:pinned kind_dst:device size:65536 dest:0 async:1")}),
             plane.event("Memset", 1700, 10, {plane.stat("memset_details", "kind:device size:4096 async:1")})});
        plane.line(99, "XLA Ops", {plane.event("fusion.1", 2000, 900)});
        plane.about(plane.stat("core_count", int64_t{132}));
        plane.about(plane.stat("compute_cap_major", int64_t{9}));
        plane.about(plane.stat("compute_cap_minor", int64_t{0}));
        space += plane.plane();
    }
    PlaneMaker host("/host:CPU");
    host.line(500, "python3",
              {host.event("train", 1000, 8000, {host.stat("step_num", int64_t{7})}),
               host.event("$train.py:10 step", 1100, 300)});
    space += host.plane();
    PlaneMaker calls("/host:CUPTI");
    calls.line(500, "python3",
               {calls.event("cuLaunchKernel", 1200, 20, {calls.stat("correlation_id", int64_t{10})}),
                calls.event("cuLaunchKernel", 1250, 20, {calls.stat("correlation_id", int64_t{20})})});
    space += calls.plane();
    PlaneMaker task("Task Environment");
    task.about(task.stat("profile_start_time", int64_t{1779782330000000000}));
    return space + task.plane() + pbBytes(4, "h100-a");
}

class XplaneReader : public testing::Test {
  protected:
    Database import(const std::vector<std::filesystem::path>& files, bool all = false) {
        std::filesystem::remove_all(m_folder / "run");
        ImportOptions options;
        options.allOperations = all;
        m_result = importRun(files, m_folder / "run", options);
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    std::string errorOf(std::string_view bytes) {
        try {
            importRun({m_folder.write("bad.xplane.pb", bytes)}, m_folder / "none");
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    std::vector<FileRank> read(std::string_view bytes) {
        std::vector<FileRank> ranks;
        kXplaneReader.read(m_folder.write("read.xplane.pb", bytes), {},
                           [&](FileRank rank) { ranks.push_back(std::move(rank)); });
        return ranks;
    }
    static int64_t lossOf(const FileRank& rank, std::string_view start) {
        for (const ImportLoss& loss : rank.losses.all())
            if (loss.message.starts_with(start)) return loss.count;
        return 0;
    }
    tests::TraceFolder m_folder;
    ImportResult m_result;
};

std::string repeated(const std::string& bytes, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += bytes;
    return all;
}

TEST_F(XplaneReader, DevicesAreRanksWithTheirStreams) {
    const auto file = m_folder.write("h100-a.xplane.pb", twoGpus());
    Database trace = import({file}, true);
    EXPECT_EQ(m_result.source, "xplane");
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    const auto count = [&](const std::string& what) { return trace.integer("SELECT COUNT(*) FROM " + what); };
    EXPECT_EQ(count("kernel"), 6);
    EXPECT_EQ(
        count("kernel k JOIN string s ON s.id = k.name_id WHERE s.text = 'loop_fusion' AND k.grid_blocks = 320 AND "
              "k.block_threads = 128 AND k.nccl = 0 AND k.dur_ns = 900"),
        2);
    EXPECT_EQ(count("memcpy WHERE bytes = 65536 AND kind = 1 AND src_memory = 2 AND dst_memory = 3"), 2);
    EXPECT_EQ(count("memset WHERE bytes = 4096"), 2);
    EXPECT_EQ(count("stream WHERE native_id IN (13, 14, 15)"), 6);
    EXPECT_EQ(count("collective WHERE op = 'all_reduce' AND members = 2 AND transfer_ns = 800 AND last_rank = 1"), 1);
    EXPECT_EQ(count("collective WHERE op = 'all_to_all' AND members = 2"), 1) << "by the operation, not by the kernel";
    EXPECT_EQ(count("api_call a JOIN kernel k ON k.rank = a.rank AND k.correlation_id = a.correlation_id"), 2);
    EXPECT_EQ(count("nvtx n JOIN string s ON s.id = n.name_id WHERE s.text = 'train 7' AND n.dur_ns = 8000"), 2);
    EXPECT_EQ(count("nvtx n JOIN string s ON s.id = n.domain_id WHERE s.text = 'python_function'"), 2);
    EXPECT_EQ(count("device WHERE multiprocessors = 132 AND compute_capability = 90"), 2);
    EXPECT_EQ(count("host WHERE name = 'h100-a'"), 1);
    EXPECT_EQ(trace.integer("SELECT value FROM meta WHERE key = 'start_unix_ns'"), 1779782330000000000 + 2000);
}

TEST_F(XplaneReader, OfTpusOperationsAreTheirKernels) {
    std::string space;
    for (int64_t tpu : {0, 1}) {
        PlaneMaker plane("/device:TPU:" + std::to_string(tpu));
        plane.line(1, "Steps", {plane.event("3", 0, 5000)});
        plane.line(2, "XLA Ops",
                   {plane.event("%fusion.2 = f32[8] fusion(...)", 0, 900), plane.event("all-gather.4", 1000, 400),
                    plane.event("all-reduce-start.5", 1500, 10), plane.event("all-reduce-done.5", 2000, 300)});
        space += plane.plane();
    }
    Database trace = import({m_folder.writeGzip("tpu.xplane.pb.gz", space)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 8);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_gather' AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'no calls of the driver%'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE 'the devices are Google''s (TPU)%'"), 1);
}

TEST_F(XplaneReader, TimesThatCannotBeAndStrangeStatsAreLeftOut) {
    PlaneMaker plane("/device:GPU:0");
    plane.line(1, "Stream #1",
               {plane.event("gemm", 10, 10), plane.event("gemm", 20, -5),
                plane.event("MemcpyD2H", 40, 5, {plane.stat("memcpy_details", "size:x kind_src:y")})});
    plane.line(2, "Stream #2", {plane.event("gemm", 10, 10)}, INT64_MAX);
    plane.line(3, "Stream #3",
               {plane.event("gemm", 10, 10, {plane.stat("kernel_details", "grid:99999999999,4 block:,")})});
    Database trace = import({m_folder.write("a.xplane.pb", plane.plane())});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE grid_blocks IS NOT NULL"), 0);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE kind = 'bad_block'"), 2);
}

TEST_F(XplaneReader, ACutFileGivesThePlanesInFrontOfTheCut) {
    const std::string whole = twoGpus();
    Database trace = import({m_folder.write("cut.xplane.pb", whole.substr(0, whole.find("/host:CUPTI")))});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 6);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 1);
    for (size_t bytes = 0; bytes < whole.size(); bytes += 31) {
        std::string hurt = whole;
        hurt[bytes] = static_cast<char>(hurt[bytes] ^ 0xff);
        for (const std::string& text : {whole.substr(0, bytes), hurt}) {
            try {
                importRun({m_folder.write("part.xplane.pb", text)}, m_folder / "part");
            } catch (const ImportError&) {  // told
            }
        }
    }
}

TEST_F(XplaneReader, WhatHasNothingInItTakesNoRoom) {
    // Of two bytes each: stats and lines of a plane, events of a line, stats of an event, planes.
    PlaneMaker plane("/device:GPU:0");
    const std::string gemm = plane.event("gemm", 10, 10) + repeated(pbBytes(4, ""), 100'000);
    plane.line(1, "Stream #1", {gemm});
    std::string bytes = plane.plane();
    const std::string inside = bytes.substr(bytes.find("\x12\x0d/device"));
    bytes = pbBytes(1, inside + repeated(pbBytes(6, ""), 1'000'000) + repeated(pbBytes(3, ""), 1'000'000) +
                           repeated(pbBytes(4, ""), 1'000'000) + repeated(pbBytes(5, ""), 1'000'000)) +
            repeated(pbBytes(1, ""), 1'000'000);
    const auto ranks = read(bytes);
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 1u);
}

TEST_F(XplaneReader, StatsOfANameAreNotReadAgainForEachEvent) {
    // 200,000 events of one name, which has 200,000 stats and a name of a megabyte: 10^10 steps were each to look.
    PlaneMaker plane("/device:GPU:0");
    const std::string event = pbNumber(1, 1) + pbNumber(2, 5000) + pbNumber(3, 1000);
    const std::string named = pbNumber(1, 1) + pbBytes(2, std::string(1'000'000, 'k')) +
                              repeated(pbBytes(5, pbNumber(1, 2) + pbNumber(4, 3)), 200'000);
    const std::string bytes = pbBytes(
        1, pbBytes(2, "/device:GPU:0") + pbBytes(3, pbBytes(2, "Stream #1") + repeated(pbBytes(4, event), 200'000)) +
               pbBytes(4, pbNumber(1, 1) + pbBytes(2, named)));
    const auto ranks = read(bytes);
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 200'000u);
    EXPECT_EQ(ranks[0].recording.strings[ranks[0].recording.kernels[0].nameId].size(), 4096u);
    EXPECT_EQ(lossOf(ranks[0], "names of events are cut"), 1);
}

TEST_F(XplaneReader, APlaneWithMoreNamesThanAnyProgramKeepsItsEvents) {
    std::string names;
    for (int64_t i = 1; i <= (1 << 20) + 5; ++i) names += pbBytes(4, pbNumber(1, i) + pbBytes(2, pbBytes(2, "k")));
    const auto event = [](int64_t name) {
        return pbBytes(4, pbNumber(1, name) + pbNumber(2, name) + pbNumber(3, 1000));
    };
    const auto ranks =
        read(pbBytes(1, pbBytes(2, "/device:GPU:0") +
                            pbBytes(3, pbBytes(2, "Stream #1") + event(7) + event((1 << 20) + 3)) + names));
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 2u);
    EXPECT_EQ(lossOf(ranks[0], "a plane names more than 1,048,576"), 1);
}

TEST_F(XplaneReader, PlanesOfDevicesThatNoHostHasAreLeftOut) {
    std::string bytes;
    for (const char* ordinal : {"0", "254", "255", "4095", "-1", "99999999999999999999"}) {
        PlaneMaker plane(std::string("/device:GPU:") + ordinal);
        plane.line(1, "Stream #1", {plane.event("gemm", 10, 10)});
        bytes += plane.plane();
    }
    PlaneMaker part("/device:TPU:0 SparseCore 1");
    part.line(1, "XLA Ops", {part.event("gather", 10, 10)});
    const auto ranks = read(bytes + part.plane());
    EXPECT_EQ(ranks.size(), 2u);
    EXPECT_EQ(lossOf(ranks.at(0), "planes of devices that no host has"), 4);
}

TEST_F(XplaneReader, FieldsOfAnotherTypeAreNotRead) {
    PlaneMaker plane("/device:GPU:0");
    plane.line(1, "Stream #1", {plane.event("gemm", 10, 10)});
    const std::string whole = plane.plane();
    // Each number once as a text and once as a number, where the other one stands.
    std::string wrongLine, wrongEvent, wrongPlane, wrongStat;
    for (uint32_t field = 1; field <= 11; ++field) {
        if (field != 2 && field != 4 && field != 11) wrongLine += pbBytes(field, "ab");
        if (field == 2 || field == 4 || field == 11) wrongLine += pbNumber(field, 300);
        wrongEvent += field == 4 ? pbNumber(field, 300) : pbBytes(field, "ab");
        wrongStat += field == 5 || field == 6 ? pbNumber(field, 300) : pbBytes(field, "ab");
        if (field != 1) wrongPlane += pbNumber(field, 300);
    }
    wrongEvent += pbBytes(4, wrongStat);
    const auto ranks = read(whole + pbNumber(1, 300) + pbNumber(4, 300) +
                            pbBytes(1, pbBytes(2, "/device:GPU:1") + wrongPlane +
                                           pbBytes(3, pbBytes(2, "Stream #1") + wrongLine + pbBytes(4, wrongEvent)) +
                                           pbBytes(4, pbBytes(1, "ab") + pbNumber(2, 300)) + pbBytes(6, wrongStat) +
                                           pbBytes(5, pbNumber(1, 1) + pbBytes(2, pbNumber(2, 300)))));
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 1u);
    EXPECT_EQ(ranks[1].recording.kernels.size(), 1u) << "an event without a name and a time, but an event";
}

TEST_F(XplaneReader, ADamagedLineCostsItsOwnEventsAlone) {
    PlaneMaker plane("/device:GPU:0");
    plane.line(1, "Stream #1", {plane.event("gemm", 10, 10), std::string("\x08\xff", 2)});
    plane.line(2, "Stream #2", {plane.event("gemm", 30, 10)});
    const auto ranks = read(plane.plane());
    ASSERT_EQ(ranks.size(), 1u);
    EXPECT_EQ(ranks[0].recording.kernels.size(), 2u);
    EXPECT_EQ(lossOf(ranks[0], "a line is damaged"), 1);
}

TEST_F(XplaneReader, OneOfTheHostAloneIsRefused) {
    PlaneMaker host("/host:CPU");
    host.line(500, "python3", {host.event("train", 1000, 8000)});
    EXPECT_NE(errorOf(host.plane()).find("it is of the host alone"), std::string::npos);
    EXPECT_NE(errorOf("\x0a\x7f/host:CPU").find("no plane of it can be read"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::collector
