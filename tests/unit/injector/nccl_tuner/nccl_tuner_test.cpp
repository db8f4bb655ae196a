// SPDX-License-Identifier: Apache-2.0
// NCCL's calls into the tuner plugin, in the binary layout of each version. The tables are those that NCCL's own
// headers give (src/include/plugin/tuner/tuner_v2.h to tuner_v7.h), declared here once more rather than taken from the
// plugin.
#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "injector/nccl_tuner/tuner_rows.h"
#include "tests/unit/injector/nccl_tuner/tuner_lines.h"
#include "tests/unit/injector/own_process.h"
#include "tests/unit/injector/temporary_folder.h"

namespace rankscope::injector {
extern "C" const tuner_abi::TunerV2 ncclTunerPlugin_v2;
extern "C" const tuner_abi::TunerV3 ncclTunerPlugin_v3;
extern "C" const tuner_abi::TunerV4 ncclTunerPlugin_v4;
extern "C" const tuner_abi::TunerV5 ncclTunerPlugin_v5;
extern "C" const tuner_abi::TunerV6 ncclTunerPlugin_v6;
extern "C" const tuner_abi::TunerV7 ncclTunerPlugin_v7;
}  // namespace rankscope::injector

namespace {

using namespace rankscope;
using namespace rankscope::injector;

constexpr int kTree = 0, kRing = 1, kNvls = 4, kNvlsTree = 5, kPat = 6, kLl = 0, kLl128 = 1, kSimple = 2;
constexpr int kBroadcast = 0, kAllGather = 2, kAllReduce = 4;
constexpr float kUnavailable = -1;

/// NCCL's table, float[7][3] in one piece, with guards on both sides.
struct CostTable {
    float before[4] = {7, 7, 7, 7};
    float cost[7][3];
    float behind[4] = {8, 8, 8, 8};

    CostTable() {
        for (auto& row : cost)
            for (float& entry : row) entry = kUnavailable;
        for (float& entry : cost[kTree]) entry = 20;
        for (float& entry : cost[kRing]) entry = 10;
        cost[kNvls][kSimple] = 30;
    }
    float** asNcclPassesIt() { return reinterpret_cast<float**>(cost); }
    bool operator==(const CostTable& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};

std::string g_log;
void logger(int level, unsigned long, const char*, int, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g_log += "level " + std::to_string(level) + ": " + text + "\n";
}

struct Answer {
    CostTable table;
    int channels = 0;
    int algorithm = -1, protocol = -1;  ///< version 2

    bool untouched() const { return table == CostTable() && channels == 0 && algorithm == -1 && protocol == -1; }
    /// The first of the cheapest, as topoGetAlgoInfo takes it.
    std::pair<int, int> chosen() const {
        std::pair<int, int> best{-1, -1};
        float least = 3e38f;
        for (int a = 0; a < 7; ++a)
            for (int p = 0; p < 3; ++p)
                if (table.cost[a][p] >= 0 && table.cost[a][p] < least) {
                    least = table.cost[a][p];
                    best = {a, p};
                }
        return best;
    }
};

/// One version's table with its differences of types taken away.
struct Plugin {
    int version;
    std::function<int(size_t ranks, size_t nodes, void** context)> init;
    std::function<int(void* context, int function, size_t bytes, int pipeOps, int registered, Answer& answer)> ask;
    int (*finish)(void* context);
};

const Plugin kPlugins[] = {
    {2,
     [](size_t ranks, size_t nodes, void** context) { return ncclTunerPlugin_v2.init(ranks, nodes, logger, context); },
     [](void* context, int function, size_t bytes, int pipeOps, int, Answer& a) {
         return ncclTunerPlugin_v2.getCollInfo(context, function, bytes, 0, 1, pipeOps, &a.algorithm, &a.protocol,
                                               &a.channels);
     },
     ncclTunerPlugin_v2.destroy},
    {3,
     [](size_t ranks, size_t nodes, void** context) { return ncclTunerPlugin_v3.init(ranks, nodes, logger, context); },
     [](void* context, int function, size_t bytes, int pipeOps, int, Answer& a) {
         return ncclTunerPlugin_v3.getCollInfo(context, function, bytes, pipeOps, a.table.asNcclPassesIt(), 7, 3,
                                               &a.channels);
     },
     ncclTunerPlugin_v3.destroy},
    {4,
     [](size_t ranks, size_t nodes, void** context) { return ncclTunerPlugin_v4.init(ranks, nodes, logger, context); },
     [](void* context, int function, size_t bytes, int pipeOps, int registered, Answer& a) {
         return ncclTunerPlugin_v4.getCollInfo(context, function, bytes, pipeOps, a.table.asNcclPassesIt(), 7, 3,
                                               registered, &a.channels);
     },
     ncclTunerPlugin_v4.destroy},
    {5,
     [](size_t ranks, size_t nodes, void** context) {
         return ncclTunerPlugin_v5.init(context, 0xc0ffee, ranks, nodes, logger, nullptr, nullptr);
     },
     [](void* context, int function, size_t bytes, int pipeOps, int registered, Answer& a) {
         return ncclTunerPlugin_v5.getCollInfo(context, function, bytes, pipeOps, a.table.asNcclPassesIt(), 7, 3,
                                               registered, &a.channels);
     },
     ncclTunerPlugin_v5.finalize},
    {6,
     [](size_t ranks, size_t nodes, void** context) {
         return ncclTunerPlugin_v6.init(context, 0xc0ffee, ranks, nodes, logger, nullptr, nullptr);
     },
     [](void* context, int function, size_t bytes, int pipeOps, int registered, Answer& a) {
         return ncclTunerPlugin_v6.getCollInfo(context, function, bytes, pipeOps, a.table.asNcclPassesIt(), 7, 3,
                                               registered, &a.channels);
     },
     ncclTunerPlugin_v6.finalize},
    {7,
     [](size_t ranks, size_t nodes, void** context) {
         return ncclTunerPlugin_v7.init(context, 0xc0ffee, ranks, nodes, logger, nullptr, nullptr);
     },
     [](void* context, int function, size_t bytes, int pipeOps, int registered, Answer& a) {
         return ncclTunerPlugin_v7.getCollInfo(context, function, bytes, pipeOps, a.table.asNcclPassesIt(), 7, 3,
                                               registered, &a.channels);
     },
     ncclTunerPlugin_v7.finalize},
};

/// A communicator of one version.
class Communicator {
  public:
    Communicator(const Plugin& plugin, size_t ranks, size_t nodes) : m_plugin(plugin) {
        EXPECT_EQ(plugin.init(ranks, nodes, &m_context), 0);
    }
    ~Communicator() { EXPECT_EQ(m_plugin.finish(m_context), 0); }
    Answer ask(int function, size_t bytes, int pipeOps = 1, int registered = 0) const {
        Answer answer;
        EXPECT_EQ(m_plugin.ask(m_context, function, bytes, pipeOps, registered, answer), 0);
        return answer;
    }
    /// What is used, whatever the version's way to say it; -1 -1: NCCL's own choice.
    std::pair<int, int> forced(int function, size_t bytes, int pipeOps = 1, int registered = 0) const {
        const Answer answer = ask(function, bytes, pipeOps, registered);
        if (m_plugin.version == 2) return {answer.algorithm, answer.protocol};
        if (answer.untouched()) return {-1, -1};
        return answer.chosen();
    }

  private:
    const Plugin& m_plugin;
    void* m_context = nullptr;
};

constexpr std::pair<int, int> kNcclsChoice{-1, -1};

struct NcclTuner {
    void setUp() {
        for (const char* name :
             {"RANKSCOPE_TUNER_ROWS", "RANKSCOPE_CHAIN_NCCL_TUNER", "NCCL_TUNER_CONFIG_FILE", "NCCL_NET_PLUGIN"})
            unsetenv(name);
    }
    static void rows(const char* text) { setenv("RANKSCOPE_TUNER_ROWS", text, 1); }
};

OWN_PROCESS_TEST(NcclTuner, ARowDecidesForItsSizesAndCommunicatorsInEveryVersion) {
    rows("allreduce,1000,2000,tree,simple,4,2,16;allreduce,2001,-1,ring,ll,-1,2,16;allgather,0,-1,ring,simple,-1,-1,8");
    for (const Plugin& plugin : kPlugins) {
        SCOPED_TRACE(plugin.version);
        const Communicator wide(plugin, 16, 2), narrow(plugin, 8, 1);
        for (const size_t bytes : {size_t{1000}, size_t{2000}}) {
            EXPECT_EQ(wide.forced(kAllReduce, bytes), std::pair(kTree, kSimple));
            EXPECT_EQ(wide.ask(kAllReduce, bytes).channels, 4);
        }
        EXPECT_EQ(wide.forced(kAllReduce, size_t{1} << 40), std::pair(kRing, kLl));
        EXPECT_EQ(wide.ask(kAllReduce, 2001).channels, 0);
        EXPECT_EQ(narrow.forced(kAllGather, 0), std::pair(kRing, kSimple));
        // Everything else is NCCL's.
        EXPECT_TRUE(wide.ask(kAllReduce, 999).untouched());
        EXPECT_TRUE(wide.ask(kAllGather, 1000).untouched());
        EXPECT_TRUE(narrow.ask(kAllReduce, 1000).untouched());
        EXPECT_TRUE(narrow.ask(kBroadcast, 1000).untouched());
        EXPECT_TRUE(narrow.ask(99, 1000).untouched());
    }
}

OWN_PROCESS_TEST(NcclTuner, OnlyTheChosenEntryOfTheTableChanges) {
    rows("allreduce,0,-1,ring,ll128,-1,-1,-1");
    for (const Plugin& plugin : kPlugins) {
        if (plugin.version == 2) continue;
        CostTable expected;
        expected.cost[kRing][kLl128] = 0;
        EXPECT_TRUE(Communicator(plugin, 8, 1).ask(kAllReduce, 5).table == expected) << plugin.version;
    }
}

OWN_PROCESS_TEST(NcclTuner, WhatNcclDoesNotHaveIsLeftAlone) {
    rows("allgather,0,-1,pat,simple,8,-1,-1;allreduce,0,-1,nvls_tree,simple,-1,-1,-1");
    for (const Plugin& plugin : kPlugins) {
        const Communicator communicator(plugin, 8, 1);
        EXPECT_TRUE(communicator.ask(kAllGather, 5).untouched()) << plugin.version;
        EXPECT_TRUE(communicator.ask(kAllReduce, 5).untouched()) << plugin.version;
    }
    EXPECT_NE(g_log.find("level 2: rankscope tuner: row 1: allgather of 5 bytes, 8 ranks on 1 node: pat simple, which "
                         "NCCL does not have here"),
              std::string::npos)
        << g_log;
}

OWN_PROCESS_TEST(NcclTuner, VersionTwoNamesNothingThatItCannotKnowToExist) {
    rows(
        "allreduce,0,9,ring,ll128,-1,-1,-1;allreduce,10,19,nvls,simple,-1,-1,-1;allreduce,20,29,collnet_direct,simple,-"
        "1,-1,-1");
    const Communicator oneNode(kPlugins[0], 8, 1), twoNodes(kPlugins[0], 16, 2);
    EXPECT_EQ(oneNode.forced(kAllReduce, 5), kNcclsChoice);
    EXPECT_EQ(oneNode.forced(kAllReduce, 15),
              std::pair(kNvls, kSimple));  // the call says that NVLS is there, and CollNet is not
    EXPECT_EQ(twoNodes.forced(kAllReduce, 15), kNcclsChoice);
    EXPECT_EQ(twoNodes.forced(kAllReduce, 25), kNcclsChoice);
}

OWN_PROCESS_TEST(NcclTuner, OperationsOfTheGroupAndRegisteredBuffersTellRowsApart) {
    rows(
        "allreduce,0,-1,tree,ll,-1,-1,-1,2,-1;allreduce,0,-1,tree,simple,-1,-1,-1,1,1;allgather,0,-1,ring,ll,-1,-1,-1,-"
        "1,0");
    const Communicator communicator(kPlugins[3], 8, 1);
    EXPECT_EQ(communicator.forced(kAllReduce, 5, 2, 0), std::pair(kTree, kLl));
    EXPECT_EQ(communicator.forced(kAllReduce, 5, 1, 1), std::pair(kTree, kSimple));
    EXPECT_EQ(communicator.forced(kAllReduce, 5, 1, 0), kNcclsChoice);
    EXPECT_EQ(communicator.forced(kAllGather, 5, 7, 0), std::pair(kRing, kLl));
    EXPECT_EQ(communicator.forced(kAllGather, 5, 7, 1), kNcclsChoice);
}

OWN_PROCESS_TEST(NcclTuner, AnOlderTableWithoutTheNewestAlgorithmIsNotOverrun) {
    rows("allgather,0,-1,pat,simple,-1,-1,-1;allreduce,0,-1,ring,simple,-1,-1,-1");
    for (size_t v : {1, 2, 3, 4}) {
        void* context = nullptr;
        ASSERT_EQ(kPlugins[v].init(4, 4, &context), 0);
        CostTable table;
        table.cost[kPat][kSimple] = 5;  // behind a table of six algorithms: not NCCL's any more
        const CostTable before = table;
        int channels = 0;
        EXPECT_EQ(ncclTunerPlugin_v3.getCollInfo(context, kAllGather, 5, 1, table.asNcclPassesIt(), 6, 3, &channels),
                  0);
        EXPECT_TRUE(table == before);
        EXPECT_EQ(ncclTunerPlugin_v3.getCollInfo(context, kAllReduce, 5, 1, nullptr, 7, 3, &channels), 0);
        EXPECT_EQ(ncclTunerPlugin_v3.getCollInfo(context, kAllReduce, 5, 1, table.asNcclPassesIt(), 7, 3, nullptr), 0);
        EXPECT_EQ(table.cost[kRing][kSimple], 0);
        EXPECT_EQ(ncclTunerPlugin_v3.getCollInfo(nullptr, kAllReduce, 5, 1, table.asNcclPassesIt(), 7, 3, &channels),
                  0);
        EXPECT_EQ(kPlugins[v].finish(context), 0);
        EXPECT_EQ(kPlugins[v].finish(nullptr), 0);
    }
}

OWN_PROCESS_TEST(NcclTuner, WithoutRowsNothingIsForced) {
    for (const Plugin& plugin : kPlugins)
        EXPECT_TRUE(Communicator(plugin, 8, 1).ask(kAllReduce, 5).untouched()) << plugin.version;
}

OWN_PROCESS_TEST(NcclTuner, AWrongLineOfAFileIsSkippedAndLogged) {
    TemporaryFolder folder;
    const std::string file = folder.path() + "/rows.csv";
    std::ofstream(file)
        << "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n# a; "
           "b\nallreduce,0,9,rings,ll,-1,-1,-1\n"
           "allreduce,0,9,tree,ll,-1,-1,-1\r\nallreduce,5,20,ring,ll,-1,-1,-1\nallgather,0,9,ring,ll,-1,-1,-1";
    setenv("NCCL_TUNER_CONFIG_FILE", file.c_str(), 1);
    const Communicator communicator(kPlugins[4], 8, 1);
    EXPECT_EQ(communicator.forced(kAllReduce, 6), std::pair(kTree, kLl));
    EXPECT_EQ(communicator.forced(kAllReduce, 15), kNcclsChoice);
    EXPECT_EQ(communicator.forced(kAllGather, 6), std::pair(kRing, kLl));
    EXPECT_NE(g_log.find("level 2: rankscope tuner: line 3 skipped: unknown algorithm"), std::string::npos) << g_log;
    EXPECT_NE(g_log.find("line 5 skipped: overlaps an earlier line"), std::string::npos) << g_log;
}

OWN_PROCESS_TEST(NcclTuner, AFileThatCannotBeReadForcesNothingAndIsNamed) {
    setenv("NCCL_TUNER_CONFIG_FILE", "/nowhere/rows.csv", 1);
    EXPECT_TRUE(Communicator(kPlugins[4], 8, 1).ask(kAllReduce, 5).untouched());
    EXPECT_NE(g_log.find("/nowhere/rows.csv cannot be read"), std::string::npos) << g_log;
}

OWN_PROCESS_TEST(NcclTuner, EachLineIsJudgedAsTheCommandLineDoes) {
    for (const auto& [line, right] : rankscope::test::kTunerLines) {
        TunerRow row;
        EXPECT_EQ(parseTunerRow(line, std::strlen(line), row) == nullptr, right) << line;
        EXPECT_FALSE(isSilentLine(line, std::strlen(line))) << line;
    }
    for (const auto& [first, second, expected] : rankscope::test::kTunerPairs) {
        TunerRow a, b;
        ASSERT_EQ(parseTunerRow(first, std::strlen(first), a), nullptr) << first;
        ASSERT_EQ(parseTunerRow(second, std::strlen(second), b), nullptr) << second;
        EXPECT_EQ(overlap(a, b), expected) << first << " and " << second;
        EXPECT_EQ(overlap(b, a), expected) << first << " and " << second;
    }
}

// --- the user's own plugin ---

struct ChainedNcclTuner : NcclTuner {
    void chain(int version) {
        setenv("RANKSCOPE_CHAIN_NCCL_TUNER",
               (std::string(RANKSCOPE_TEST_CHAINED_TUNER) + std::to_string(version) + ".so").c_str(), 1);
        setenv("CHAINED_TUNER_LOG", m_log.c_str(), 1);
        rows("allgather,0,-1,ring,ll,-1,-1,-1");
    }
    std::string log() const {
        std::ostringstream text;
        text << std::ifstream(m_log).rdbuf();
        return text.str();
    }

    TemporaryFolder m_folder;
    std::string m_log = m_folder.path() + "/log";
};

template <int Version>
struct ChainedNcclTunerOf : ChainedNcclTuner {
    /// NCCL of `version` asks: ours answers where a row matches, theirs elsewhere.
    void check(const Plugin& plugin) {
        chain(Version);
        {
            const Communicator communicator(plugin, 8, 1);
            EXPECT_EQ(communicator.forced(kAllGather, 5), std::pair(kRing, kLl));
            const Answer theirs = communicator.ask(kAllReduce, 5);
            EXPECT_EQ(theirs.channels, 3);
            if (plugin.version == 2)
                EXPECT_EQ(theirs.algorithm, kTree);
            else
                EXPECT_EQ(theirs.chosen(), std::pair(kTree, kSimple));
        }
        const std::string v = "v" + std::to_string(Version);
        EXPECT_EQ(log(), v + " begin\n" + v + " asked\n" + v + " end\n");
    }
};

using ChainedV2 = ChainedNcclTunerOf<2>;
using ChainedV3 = ChainedNcclTunerOf<3>;
using ChainedV4 = ChainedNcclTunerOf<4>;
using ChainedV5 = ChainedNcclTunerOf<5>;
using ChainedV6 = ChainedNcclTunerOf<6>;
using ChainedV7 = ChainedNcclTunerOf<7>;
OWN_PROCESS_TEST(ChainedV2, IsAskedByTheOldestNccl) {
    check(kPlugins[0]);
}
OWN_PROCESS_TEST(ChainedV2, IsAskedByTheNewestNccl) {
    check(kPlugins[5]);
}
OWN_PROCESS_TEST(ChainedV3, IsAskedByItsOwnNccl) {
    check(kPlugins[1]);
}
OWN_PROCESS_TEST(ChainedV3, IsAskedByTheNewestNccl) {
    check(kPlugins[5]);
}
OWN_PROCESS_TEST(ChainedV4, IsAskedByTheNewestNccl) {
    check(kPlugins[5]);
}
OWN_PROCESS_TEST(ChainedV5, IsAskedByItsOwnNccl) {
    check(kPlugins[3]);
}
OWN_PROCESS_TEST(ChainedV5, IsAskedByTheNewestNccl) {
    check(kPlugins[5]);
}
OWN_PROCESS_TEST(ChainedV6, IsAskedByItsOwnNccl) {
    check(kPlugins[4]);
}
OWN_PROCESS_TEST(ChainedV6, IsAskedByTheNewestNccl) {
    check(kPlugins[5]);
}

OWN_PROCESS_TEST(ChainedV7, IsAskedByItsOwnNccl) {
    check(kPlugins[5]);
}

/// NCCL 2.32.6's constants, told to the plugin in the form of its own version: what it changes is at the same place
/// afterwards.
struct MachineModel {
    double latencies[84];
    double bandwidths[5][5][3];

    MachineModel() {
        auto* numbers = reinterpret_cast<double*>(this);
        for (size_t i = 0; i < sizeof(MachineModel) / sizeof(double); ++i) numbers[i] = static_cast<double>(i + 1);
    }
    /// Numbers that are no longer what they were, as table, compute capability, scale.
    std::vector<std::array<int, 3>> changed() const {
        const MachineModel fresh;
        std::vector<std::array<int, 3>> places;
        for (int t = 0; t < 5; ++t)
            for (int c = 0; c < 5; ++c)
                for (int s = 0; s < 3; ++s)
                    if (bandwidths[t][c][s] != fresh.bandwidths[t][c][s]) places.push_back({t, c, s});
        if (std::memcmp(latencies, fresh.latencies, sizeof latencies) != 0) places.push_back({-1, -1, -1});
        return places;
    }
};

template <int Version>
struct ChangedConstants : ChainedNcclTunerOf<Version> {
    void check(std::array<int, 3> place) {
        this->chain(Version);
        MachineModel model;
        void* context = nullptr;
        ASSERT_EQ(ncclTunerPlugin_v7.init(&context, 0xc0ffee, 8, 1, logger, nullptr, &model), 0);
        EXPECT_EQ(model.changed(), std::vector{place});
        EXPECT_EQ(model.bandwidths[place[0]][place[1]][place[2]],
                  2 * MachineModel().bandwidths[place[0]][place[1]][place[2]]);
        ncclTunerPlugin_v7.finalize(context);
    }
};
using ChangedByV5 = ChangedConstants<5>;
using ChangedByV6 = ChangedConstants<6>;
using ChangedByV7 = ChangedConstants<7>;
OWN_PROCESS_TEST(ChangedByV5, ForBlackwellInNcclsOwnForm) {
    check({4, 3, 2});
}
OWN_PROCESS_TEST(ChangedByV6, ForBlackwellInNcclsOwnForm) {
    check({4, 3, 2});
}
OWN_PROCESS_TEST(ChangedByV7, ForRubin) {
    check({4, 4, 2});
}

OWN_PROCESS_TEST(ChainedV6, ChangesTheChunkSize) {
    chain(6);
    void* context = nullptr;
    ASSERT_EQ(kPlugins[4].init(8, 1, &context), 0);
    size_t chunkBytes = 4096;
    EXPECT_EQ(ncclTunerPlugin_v6.getChunkSize(context, kAllReduce, 5, kRing, kSimple, 4, &chunkBytes), 0);
    EXPECT_EQ(chunkBytes, 2048u);
    ncclTunerPlugin_v6.finalize(context);
}

OWN_PROCESS_TEST(ChainedV6, IsNotUsedByAnNcclThatWouldNotHaveLoadedIt) {
    chain(6);
    {
        const Communicator communicator(kPlugins[2], 8, 1);
        EXPECT_TRUE(communicator.ask(kAllReduce, 5).untouched());
        EXPECT_EQ(communicator.forced(kAllGather, 5), std::pair(kRing, kLl));
    }
    EXPECT_EQ(log(), "");
}

OWN_PROCESS_TEST(ChainedV5, ThatRefusesACommunicatorIsLeftOutOfIt) {
    chain(5);
    setenv("CHAINED_TUNER_REFUSES", "1", 1);
    {
        const Communicator communicator(kPlugins[3], 8, 1);
        EXPECT_TRUE(communicator.ask(kAllReduce, 5).untouched());
    }
    EXPECT_EQ(log(), "v5 begin\n");
    EXPECT_NE(g_log.find("refuses this communicator"), std::string::npos) << g_log;
}

OWN_PROCESS_TEST(ChainedNcclTuner, OneThatCannotBeOpenedIsNamedAndOursGoesOn) {
    chain(5);
    setenv("RANKSCOPE_CHAIN_NCCL_TUNER", "/nowhere/libnccl-tuner-gone.so", 1);
    EXPECT_EQ(Communicator(kPlugins[4], 8, 1).forced(kAllGather, 5), std::pair(kRing, kLl));
    EXPECT_NE(g_log.find("/nowhere/libnccl-tuner-gone.so cannot be opened"), std::string::npos) << g_log;
}

}  // namespace
