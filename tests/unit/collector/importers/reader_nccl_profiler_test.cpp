// SPDX-License-Identifier: Apache-2.0
// Dumps of NCCL's example profiler plugin: what becomes of those of two ranks, of a damaged one, and of those without
// times.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

std::string pluginEvent(const char* name, const char* category, const char* phase, double us,
                        const std::string& args = "") {
    return R"({"name": ")" + std::string(name) + R"(", "cat": ")" + category + R"(", "ph": ")" + phase +
           R"(", "id": 0, "pid": 4711, "tid": 1, "ts": )" + std::to_string(us) +
           (args.empty() ? "" : R"(, "args": {)" + args + "}") + "},\n";
}

/// A collective whose kernel has two channels, the second of which begins and ends later.
std::string pluginCollective(int rank, int seq, const char* name, double us, double endUs, bool timed = true) {
    std::string text =
        pluginEvent("Group", "GROUP", "b", us, R"("groupId": 0)") +
        pluginEvent(
            name, "COLL", "b", us,
            R"("SeqNum": )" + std::to_string(seq) + R"(, "CommHash": 18446744073709551000, "Rank": )" +
                std::to_string(rank) +
                R"(, "Count": 1024, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2)");
    for (const double later : {0.5, 1.0})
        if (timed)
            text +=
                pluginEvent("KernelCh", "GPU", "b", us + later, R"("Channel": 0, "StartGpuClk": 1, "StopGpuClk": 2)") +
                pluginEvent("KernelCh", "GPU", "e", endUs + later);
    return text + pluginEvent(name, "COLL", "e", endUs + 5) + pluginEvent("Group", "GROUP", "e", endUs + 6);
}

std::string pluginDump(int rank, double lateUs = 0) {
    return "[\n" + pluginCollective(rank, 0, "AllReduce", 100 + lateUs, 150) +
           pluginCollective(rank, 1, "AllGather", 200, 230) + "{}]\n";
}

class NcclProfilerReader : public testing::Test {
  protected:
    std::string errorOf(const std::string& text) {
        try {
            importRun({m_folder.write("bad.json", text)}, m_folder / "none");
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    Database import(const std::vector<std::filesystem::path>& files) {
        m_result = importRun(files, m_folder / "run");
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    tests::TraceFolder m_folder;
    ImportResult m_result;
};

TEST_F(NcclProfilerReader, CollectivesLastFromTheirFirstChannelToTheirLast) {
    Database trace =
        import({m_folder.write("dump_1_1.json", pluginDump(1, 20)), m_folder.write("dump_1_0.json", pluginDump(0))});
    EXPECT_EQ(m_result.source, "nccl_profiler");
    EXPECT_EQ(m_result.ranks, (std::vector<int32_t>{0, 1}));
    const auto count = [&](const std::string& what) { return trace.integer("SELECT COUNT(*) FROM " + what); };
    EXPECT_EQ(count("kernel"), 4);
    EXPECT_EQ(count("kernel WHERE rank = 0 AND dur_ns = 50500"), 1);
    EXPECT_EQ(
        count(
            "nccl_call WHERE op = 'all_reduce' AND bytes = 4096 AND count = 1024 AND data_type = 'f32' AND algorithm = "
            "'ring' AND protocol = 'simple' AND channels = 2"),
        2);
    EXPECT_EQ(count("nccl_call WHERE op = 'all_gather' AND bytes IS NULL"), 2) << "the number of ranks is not told";
    EXPECT_EQ(count("collective WHERE op = 'all_reduce' AND members = 2 AND last_rank = 1"), 1);
    EXPECT_EQ(count("communicator WHERE identity = 'comm_hash' AND hash = -616"), 1);
    EXPECT_EQ(count("meta WHERE key = 'light' AND value = '1'"), 1);
}

TEST_F(NcclProfilerReader, ADumpOfAJobThatWasKilledGivesWhatStandsInIt) {
    const std::string whole = pluginDump(0);
    Database trace = import({m_folder.write("dump_1_0.json", whole.substr(0, whole.rfind("KernelCh")))});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail'"), 1);
    for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
        std::string hurt = whole;
        hurt[bytes] = '\0';
        for (const std::string& text : {whole.substr(0, bytes), hurt}) errorOf(text);
    }
}

TEST_F(NcclProfilerReader, WithoutTimesOfKernelsItIsRefused) {
    const std::string told = errorOf("[\n" + pluginCollective(0, 0, "AllReduce", 100, 150, false) + "{}]\n");
    EXPECT_NE(told.find("its 1 operations have no times of their kernels"), std::string::npos) << told;
    EXPECT_NE(told.find("NCCL_PROFILE_EVENT_MASK"), std::string::npos);
    EXPECT_NE(errorOf("[\n" + pluginEvent("Group", "GROUP", "b", 1, "\"groupId\": 0") + "{}]").find("no operation"),
              std::string::npos);
    const std::string odd =
        pluginEvent("AllReduce", "COLL", "b", 1, R"("CommHash": "x", "Rank": -4, "Count": 1e300, "Datatype": 7)");
    EXPECT_NE(errorOf("[" + odd + pluginEvent("KernelCh", "GPU", "b", 1e300) + "{}]").find("no times"),
              std::string::npos);
}

}  // namespace
}  // namespace rankscope::collector
