// SPDX-License-Identifier: Apache-2.0
// Whole jobs of several processes on the virtual GPUs, recorded by a plain CUPTI client.
#include <cupti.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string jobKey() {
    return "test." + std::to_string(getpid());
}

/// How the name of the job's shared memory ends: its key, hashed (FNV-1a).
std::string arenaSuffix() {
    unsigned long long hash = 1469598103934665603ull;
    for (unsigned char c : jobKey()) hash = (hash ^ c) * 1099511628211ull;
    char text[20];
    std::snprintf(text, sizeof text, ".%016llx", hash);
    return text;
}

class VgpuJob : public testing::Test {
  protected:
    VgpuJob() : m_folder(fs::path(testing::TempDir()) / ("vgpu_job." + std::to_string(getpid()))) {
        fs::create_directories(m_folder);
    }
    ~VgpuJob() override { fs::remove_all(m_folder); }

    int run(const std::string& arguments, const std::string& environment = "", const std::string& launcher = "") {
        std::string command = environment + " VGPU_DUMP=" + (m_folder / "dump").string() +
                              " RANKSCOPE_VGPU_JOB=" + jobKey() +
                              " LD_LIBRARY_PATH=" VGPU_FOLDER " CUDA_INJECTION64_PATH=" VGPU_CLIENT " " + launcher +
                              " timeout 60 " VGPU_JOB " " + arguments;
        int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    /// Sorted, since CUPTI promises no order.
    std::vector<std::string> records(int rank) {
        std::ifstream file(m_folder / ("dump." + std::to_string(rank)));
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        std::sort(lines.begin(), lines.end());
        return lines;
    }

    /// Durations of a rank's kernels whose name contains `part`, in ns.
    std::vector<long long> kernels(int rank, const std::string& part) {
        std::vector<long long> durations;
        for (const std::string& line : records(rank)) {
            long long start = 0, duration = 0;
            if (line.find(part) == std::string::npos ||
                std::sscanf(line.c_str(), "kernel %lld %lld", &start, &duration) != 2)
                continue;
            durations.push_back(duration);
        }
        return durations;
    }

    struct Call {
        long long startNs, durationNs;
        unsigned correlation;
        long long endNs() const { return startNs + durationNs; }
    };
    /// A rank's runtime calls of one kind, in the order they were made.
    std::vector<Call> calls(int rank, unsigned wanted) {
        std::vector<Call> found;
        for (const std::string& line : records(rank)) {
            Call call{};
            int kind = 0;
            unsigned cbid = 0;
            if (std::sscanf(line.c_str(), "api %lld %lld %d %u %u", &call.startNs, &call.durationNs, &kind, &cbid,
                            &call.correlation) != 5)
                continue;
            if (kind == CUPTI_ACTIVITY_KIND_RUNTIME && cbid == wanted) found.push_back(call);
        }
        std::sort(found.begin(), found.end(), [](const Call& a, const Call& b) { return a.startNs < b.startNs; });
        return found;
    }

    struct Copy {
        long long startNs, durationNs, bytes;
        unsigned stream, correlation;
        int source, destination;
        long long endNs() const { return startNs + durationNs; }
    };
    std::vector<Copy> copies(int rank) {
        std::vector<Copy> found;
        for (const std::string& line : records(rank)) {
            Copy copy{};
            if (std::sscanf(line.c_str(), "memcpy %lld %lld %u %u %lld %d %d", &copy.startNs, &copy.durationNs,
                            &copy.stream, &copy.correlation, &copy.bytes, &copy.source, &copy.destination) == 7)
                found.push_back(copy);
        }
        std::sort(found.begin(), found.end(), [](const Copy& a, const Copy& b) { return a.startNs < b.startNs; });
        return found;
    }

    std::string scenario(const std::string& text) {
        fs::path path = m_folder / "scenario.json";
        std::ofstream(path) << text;
        return "RANKSCOPE_SCENARIO=" + path.string();
    }

    fs::path m_folder;
};

TEST_F(VgpuJob, trainingSumsAreExactOnEveryRank) {
    EXPECT_EQ(run("train 4 3"), 0);
}
TEST_F(VgpuJob, messagesArriveWhereTheyWereSent) {
    EXPECT_EQ(run("p2p 4", "RANKSCOPE_VGPU_DATA=full"), 0);
}
TEST_F(VgpuJob, kernelsGetStructParametersWhole) {
    EXPECT_EQ(run("struct 1"), 0);
}
TEST_F(VgpuJob, oneProcessMayDriveAllDevices) {
    EXPECT_EQ(run("devices 4"), 0);
}
TEST_F(VgpuJob, aSecondThreadMayDoTheWaiting) {
    EXPECT_EQ(run("threads 2 2"), 0);
}
TEST_F(VgpuJob, survivorsOfADeadRankAbort) {
    EXPECT_EQ(run("death 3"), 0);
}

TEST_F(VgpuJob, aStragglersKernelsAreSlowerByItsFactorAndItsCollectivesShorter) {
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 4},
                                           "faults": [{"kind": "straggler", "rank": 3, "factor": 2}]})");
    ASSERT_EQ(run("train 4 1", environment), 0);
    // Ranks 0 and 3 launch the same grids: 100 blocks of 20 ns on top of 3 us, ten times, then 400 blocks.
    std::vector<long long> healthy = kernels(0, "compute"), slow = kernels(3, "compute");
    ASSERT_EQ(healthy.size(), 11u);
    EXPECT_EQ(healthy.front(), 5000);
    EXPECT_EQ(slow.front(), 10000);
    std::vector<long long> waits = kernels(0, "AllReduce"), last = kernels(3, "AllReduce");
    ASSERT_EQ(waits.size(), 1u);
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(waits.front() - last.front(), 10 * 5000);
}

TEST_F(VgpuJob, allocatingAndFreeingWaitForTheDeviceAndTakeTheStatedTime) {
    std::string environment =
        scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 1, "malloc_us": 100, "free_us": 40}})");
    ASSERT_EQ(run("memory 1", environment), 0);
    std::vector<Call> allocations = calls(0, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020),
                      frees = calls(0, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020);
    std::vector<long long> ran = kernels(0, "compute");
    ASSERT_EQ(allocations.size(), 3u);  // one by open(), one on an idle device, one beside a kernel
    ASSERT_EQ(ran.size(), 2u);
    EXPECT_EQ(allocations[1].durationNs, 100'000);
    EXPECT_GT(allocations[2].durationNs, ran[0] + 100'000 - 10'000);  // but for what the launch took
    EXPECT_GT(frees[0].durationNs, ran[1] + 40'000 - 10'000);
}

TEST_F(VgpuJob, aFullLaunchQueueHoldsTheHostAndNeverTheDevice) {
    ASSERT_EQ(run("queue 1", scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 1}})")), 0);
    std::vector<long long> starts, ends;
    for (const std::string& line : records(0)) {
        long long start = 0, duration = 0;
        if (std::sscanf(line.c_str(), "kernel %lld %lld", &start, &duration) == 2)
            starts.push_back(start), ends.push_back(start + duration);
    }
    std::sort(starts.begin(), starts.end());
    std::sort(ends.begin(), ends.end());
    const std::vector<Call> launches = calls(0, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    ASSERT_EQ(ends.size(), 3000u);
    ASSERT_EQ(launches.size(), 3000u);
    size_t held = 0;
    for (size_t i = 0; i < launches.size(); i++) {
        const auto ended =
            static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), launches[i].endNs()) - ends.begin());
        EXPECT_LE(i + 1 - std::min(ended, i + 1), 1024u) << "launch " << i;
        held += launches[i].durationNs > 100'000;
    }
    EXPECT_GT(held, 20u);  // 64 at a time
    EXPECT_LT(held, 40u);
    for (size_t i = 1; i < starts.size(); i++)
        ASSERT_EQ(starts[i], ends[i - 1]) << "the device waited for kernel " << i;
}

TEST_F(VgpuJob, memoryThatComesAndGoesIsRecorded) {
    ASSERT_EQ(run("memory 1"), 0);
    std::multimap<long long, int> operations;  // by size: allocations minus releases
    for (const std::string& line : records(0)) {
        int operation = 0, kind = 0;
        long long bytes = 0;
        if (std::sscanf(line.c_str(), "memory %d %d %lld", &operation, &kind, &bytes) == 3)
            operations.emplace(bytes, operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? kind : -kind);
    }
    std::vector<int> twelve;
    for (auto [it, end] = operations.equal_range(12'000'000); it != end; ++it) twelve.push_back(it->second);
    std::sort(twelve.begin(), twelve.end());
    const int device = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, pinned = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    EXPECT_EQ(twelve, (std::vector<int>{-device, -pinned, pinned, device}));
    EXPECT_EQ(operations.count(1 << 20), 2u);
}

TEST_F(VgpuJob, aProfilerPluginIsToldOfCallsLaunchesAndChannels) {
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 2}})");
    ASSERT_EQ(run("train 2 1", environment + " NCCL_PROFILER_PLUGIN=" VGPU_PROFILER), 0);
    constexpr int kGroup = 1, kColl = 2, kKernelCh = 64, kGroupApi = 256, kCollApi = 512, kKernelLaunch = 2048,
                  kKernelChStop = 22;
    struct Event {
        unsigned long id, parent;
        std::string text;
        long long endNs = 0;
    };
    std::multimap<int, Event> events;
    std::map<unsigned long, long long> channelEnds;
    std::ifstream file(m_folder / "dump.plugin.1");
    for (std::string line; std::getline(file, line);) {
        unsigned long id = 0, parent = 0;
        int type = 0;
        long long ns = 0;
        char text[64];
        if (std::sscanf(line.c_str(), "start %lu %d %lu %63s", &id, &type, &parent, text) == 4)
            events.emplace(type, Event{id, parent, text});
        if (std::sscanf(line.c_str(), "state %lu %d %lld", &id, &type, &ns) == 3 && type == kKernelChStop)
            channelEnds[id] = ns;
    }
    for (int once : {kGroup, kColl, kGroupApi, kCollApi, kKernelLaunch}) ASSERT_EQ(events.count(once), 1u) << once;
    const Event &call = events.find(kGroupApi)->second, &api = events.find(kCollApi)->second,
                &collective = events.find(kColl)->second;
    EXPECT_EQ(api.text, "AllReduce");
    EXPECT_EQ(api.parent, call.id);
    EXPECT_EQ(events.find(kKernelLaunch)->second.parent, call.id);
    EXPECT_EQ(collective.parent, api.id);
    EXPECT_EQ(collective.text, "AllReduce/RING/LL/2");
    ASSERT_EQ(events.count(kKernelCh), 2u);
    long long startNs = 0, durationNs = 0;
    for (const std::string& line : records(1))
        if (line.find("AllReduce") != std::string::npos)
            std::sscanf(line.c_str(), "kernel %lld %lld", &startNs, &durationNs);
    for (auto [it, end] = events.equal_range(kKernelCh); it != end; ++it) {
        EXPECT_EQ(it->second.parent, collective.id);
        EXPECT_EQ(std::atoll(it->second.text.c_str()), startNs);
        EXPECT_EQ(channelEnds[it->second.id], startNs + durationNs);
    }
}

TEST_F(VgpuJob, aProfilerPluginIsToldWhatProxiesSendBetweenNodes) {
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 2, "ranks_per_node": 1}})");
    ASSERT_EQ(run("train 2 1", environment + " NCCL_PROFILER_PLUGIN=" VGPU_PROFILER), 0);
    constexpr int kColl = 2, kProxyOp = 8, kProxyStep = 16, kSendWait = 9, kRecvFlushWait = 11;
    constexpr unsigned long long kEpochNs = 1767225600000000000ull;  // what the plugin takes off every argument
    std::map<unsigned long, std::pair<int, unsigned long>> started;  // type and parent
    std::map<unsigned long, bool> isSend;
    std::map<unsigned long, int> stops;
    unsigned long long sent = 0, received = 0;
    std::ifstream file(m_folder / "dump.plugin.1");
    for (std::string line; std::getline(file, line);) {
        unsigned long id = 0, parent = 0;
        int type = 0;
        unsigned long long value = 0;
        char text[64];
        if (std::sscanf(line.c_str(), "start %lu %d %lu %63s", &id, &type, &parent, text) == 4) {
            started[id] = {type, parent};
            if (type != kProxyOp) continue;
            EXPECT_EQ(std::string(text).substr(0, 2), "0/") << "the other rank";
            isSend[id] = std::string(text).find("/send/") != std::string::npos;
        }
        if (std::sscanf(line.c_str(), "stop %lu", &id) == 1) stops[id]++;
        if (std::sscanf(line.c_str(), "state %lu %d %llu", &id, &type, &value) != 3 || started[id].first != kProxyStep)
            continue;
        if (type == kSendWait) sent += value + kEpochNs;
        if (type == kRecvFlushWait) received += value + kEpochNs;
    }
    int sends = 0, receives = 0;
    for (const auto& [id, event] : started) {
        if (event.first == kProxyOp) {
            EXPECT_EQ(started[event.second].first, kColl);
            (isSend[id] ? sends : receives)++;
        }
        if (event.first == kProxyStep) {
            EXPECT_EQ(started[event.second].first, kProxyOp);
        }
        if (event.first == kProxyOp || event.first == kProxyStep) {
            EXPECT_EQ(stops[id], 1);
        }
    }
    EXPECT_GT(sends, 0);
    EXPECT_EQ(sends, receives);
    EXPECT_GT(sent, 0u);
    EXPECT_EQ(sent, received);
}

TEST_F(VgpuJob, pageableCopiesAreSlowerHoldTheCallerAndSayWhatTheyAre) {
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 1}})");
    ASSERT_EQ(run("memory 1", environment), 0);
    std::vector<Copy> made = copies(0);
    ASSERT_EQ(made.size(), 3u);
    EXPECT_EQ(made[0].durationNs, 1500 + 1'000'000);  // 12 MB at 12 GB/s, staged
    EXPECT_EQ(made[1].durationNs, 1500 + 240'000);    // at 50 GB/s from pinned memory
    EXPECT_EQ(made[0].source, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
    EXPECT_EQ(made[0].destination, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
    EXPECT_EQ(made[1].source, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    EXPECT_EQ(made[2].destination, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    std::vector<Call> async = calls(0, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020),
                      blocking = calls(0, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020);
    ASSERT_EQ(async.size(), 2u);
    ASSERT_EQ(blocking.size(), 1u);
    EXPECT_GE(async[0].endNs(), made[0].endNs());  // asynchronous in name only
    EXPECT_LT(async[1].endNs(), made[1].endNs());
    EXPECT_GE(blocking[0].endNs(), made[2].endNs());
}

TEST_F(VgpuJob, aCapturedStepRunsAsAGraphAndItsKernelsHaveNoLaunchOfTheirOwn) {
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 2}})");
    ASSERT_EQ(run("graph 2", environment), 0);
    struct Node {
        long long startNs, durationNs;
        unsigned stream, correlation, graph;
        unsigned long long node;
        char name[64];
        long long endNs() const { return startNs + durationNs; }
    };
    std::vector<Node> nodes;
    for (const std::string& line : records(1)) {
        Node n{};
        if (std::sscanf(line.c_str(), "kernel %lld %lld %u %u %u %llu %63s", &n.startNs, &n.durationNs, &n.stream,
                        &n.correlation, &n.graph, &n.node, n.name) == 7)
            nodes.push_back(n);
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const Node& a, const Node& b) { return std::pair(a.startNs, a.node) < std::pair(b.startNs, b.node); });
    ASSERT_EQ(nodes.size(), 12u);  // three launches of three kernels and an all-reduce; nothing ran at capture
    std::vector<Call> launches = calls(1, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
    ASSERT_EQ(launches.size(), 3u);
    for (size_t i = 0; i < nodes.size(); i++) {
        EXPECT_EQ(nodes[i].correlation, launches[i / 4].correlation);
        EXPECT_NE(nodes[i].graph, 0u);
        EXPECT_EQ(nodes[i].node, nodes[i % 4].node);  // a node keeps its id from launch to launch
    }
    const Node &first = nodes[0], &last = nodes[3];
    EXPECT_EQ(first.durationNs, 5000);
    EXPECT_EQ(last.durationNs, 9000);
    for (const Node* beside : {&nodes[1], &nodes[2]}) {  // the all-reduce and the kernel beside it
        EXPECT_EQ(beside->startNs, first.endNs());
        EXPECT_LE(beside->endNs(), last.startNs);
    }
    EXPECT_NE(nodes[1].stream, nodes[2].stream);
}

TEST_F(VgpuJob, environmentAndTunerPluginsChooseTheAlgorithm) {
    // Four ranks of one node, 16 KiB: LL by default; with Simple a ring takes its base, six hops of 6 us and 24 KiB at
    // the little of 200 GB/s that so few bytes reach.
    std::string environment = scenario(R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 4}})");
    constexpr long long kRingSimpleNs = 50'823 + 3'937;
    auto fastestNs = [&](const std::string& variables) {
        EXPECT_EQ(run("train 4 1", environment + " " + variables), 0) << variables;
        long long fastest = 1'000'000'000;  // the last to arrive does not wait
        for (int rank = 0; rank < 4; rank++)
            for (long long durationNs : kernels(rank, "AllReduce")) fastest = std::min(fastest, durationNs);
        return fastest;
    };
    EXPECT_LT(fastestNs(""), 24'000);
    EXPECT_EQ(fastestNs("NCCL_ALGO=Ring NCCL_PROTO=Simple"), kRingSimpleNs);
    EXPECT_EQ(fastestNs("NCCL_ALGO='allgather:ring;allreduce:ring' NCCL_PROTO='^LL,LL128'"), kRingSimpleNs);
    EXPECT_LT(fastestNs("NCCL_ALGO=allgather:ring NCCL_PROTO=allgather:simple"), 24'000);
    EXPECT_EQ(fastestNs("NCCL_TUNER_PLUGIN=" VGPU_TUNER_V5), kRingSimpleNs);
    EXPECT_EQ(fastestNs("NCCL_TUNER_PLUGIN=" VGPU_TUNER_V2), kRingSimpleNs);
    EXPECT_EQ(fastestNs("NCCL_TUNER_PLUGIN=" VGPU_TUNER_V6), kRingSimpleNs);
    EXPECT_EQ(fastestNs("NCCL_TUNER_PLUGIN=" VGPU_TUNER_V7), kRingSimpleNs);
    EXPECT_LT(fastestNs("NCCL_ALGO=^ring NCCL_TUNER_PLUGIN=" VGPU_TUNER_V5),
              24'000);  // a plugin cannot bring back what is forbidden
    EXPECT_NE(run("train 4 1", environment + " NCCL_ALGO=rings"), 0);
    EXPECT_NE(run("train 4 1", environment + " NCCL_ALGO=pat"), 0);  // nothing is left for an all-reduce
}

TEST_F(VgpuJob, recordsDoNotDependOnHowTheSystemRunsTheRanks) {
    std::string environment = scenario(R"({"noise": 0.05, "cluster": {"nodes": 2, "ranks_per_node": 2}})");
    ASSERT_EQ(run("train 4 3", environment), 0);
    std::vector<std::vector<std::string>> expected;
    for (int rank = 0; rank < 4; rank++) expected.push_back(records(rank));
    ASSERT_FALSE(expected[0].empty());
    for (int attempt = 0; attempt < 4; attempt++) {  // the host pauses at random places
        ASSERT_EQ(run("jitter 4 3", environment, attempt % 2 ? "nice -n 15" : "taskset -c 0"), 0);
        for (int rank = 0; rank < 4; rank++)
            EXPECT_EQ(records(rank), expected[static_cast<size_t>(rank)]) << "rank " << rank;
    }
}

TEST_F(VgpuJob, thatOthersHaveEndedIsAnErrorOnlyOfWhatIsUnderWay) {
    EXPECT_EQ(run("leave 2"), 0);
}

TEST_F(VgpuJob, whoHasDestroyedItsCommunicatorMayEndBeforeTheOthersHave) {
    EXPECT_EQ(run("early 2"), 0);
}

TEST_F(VgpuJob, sharedMemoryIsGoneAfterTheJob) {
    auto count = [] {
        return std::count_if(
            fs::directory_iterator("/dev/shm"), fs::directory_iterator(),
            [](const fs::directory_entry& entry) { return entry.path().filename().string().ends_with(arenaSuffix()); });
    };
    ASSERT_EQ(run("train 2 1"), 0);
    EXPECT_EQ(count(), 0);
    ASSERT_EQ(run("death 2"), 0);  // also when one of its processes was killed
    EXPECT_EQ(count(), 0);
}

}  // namespace
