// SPDX-License-Identifier: Apache-2.0
// The network transfers of NCCL's proxy thread: ProxyOp and ProxyStep events in the binary layout of each version.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "injector/nccl_plugin/proxy_events.h"
#include "tests/unit/injector/nccl_plugin/chained_profiler.h"
#include "tests/unit/injector/nccl_plugin/nccl_descriptors.h"
#include "tests/unit/injector/recorded_session.h"

using namespace rankscope;
using namespace rankscope::injector;
using namespace rankscope::injector::test;
using capture::RecordType;

namespace {

// NCCL's numbers of the states.
constexpr int kSendDoneV3 = 3, kSendGpuWait = 8, kSendWait = 9, kRecvWait = 10, kRecvFlushWait = 11, kRecvGpuWait = 12,
              kInProgress = 19, kSendPeerWait = 20;

Descriptor proxyOp(int version, void* parent, int pid, int channel, int peer, bool isSend) {
    Descriptor d = head(version, kProxyOp, parent, 3);
    return d.put<int>(24, pid)
        .put<uint8_t>(28, static_cast<uint8_t>(channel))
        .put<int>(32, peer)
        .put<int>(36, 2)
        .put<int>(40, 1 << 19)
        .put<int>(44, isSend);
}

Descriptor proxyStep(int version, void* parent, int step) {
    return head(version, kProxyStep, parent, 3).put<int>(24, step);
}

Descriptor bytesTold(uint64_t bytes) {
    return Descriptor().put<uint64_t>(0, bytes);
}

void spin(int64_t ns) {
    const int64_t until = g_session.now() + ns;
    while (g_session.now() < until) {
    }
}

/// A plugin with a communicator and a collective, which NCCL has enqueued.
struct Job {
    explicit Job(const Plugin& of) : plugin(of) {
        plugin.init(&context, &mask);
        Descriptor coll = collective(plugin.version, 3);
        plugin.startEvent(context, &collectiveEvent, coll.at());
        plugin.stopEvent(collectiveEvent);
    }
    void* start(Descriptor descriptor) const {
        void* handle = nullptr;
        EXPECT_EQ(plugin.startEvent(context, &handle, descriptor.at()), 0);
        return handle;
    }
    void tell(void* handle, int state, Descriptor arguments = {}) const {
        EXPECT_EQ(plugin.recordEventState(handle, state, arguments.at()), 0);
    }
    void stop(void* handle) const { EXPECT_EQ(plugin.stopEvent(handle), 0); }

    const Plugin& plugin;
    void* context = nullptr;
    void* collectiveEvent = nullptr;
    int mask = 0;
};

struct NcclProxy : RecordedSession {
    void begin(const std::map<std::string, std::string>& more = {}) {
        std::map<std::string, std::string> environment{{"RANKSCOPE_TRACE", "nccl"}};
        environment.insert(more.begin(), more.end());
        start(Cause::nvtx, environment);
    }
    std::vector<capture::PluginProxyOpRecord> ops() const {
        return all<capture::PluginProxyOpRecord>(RecordType::pluginProxyOp);
    }
    uint64_t lostOps() const {
        uint64_t count = 0;
        for (const auto& loss : all<capture::LossRecord>(RecordType::loss))
            if (loss.head.aux == static_cast<uint16_t>(capture::LossKind::poolExhausted)) count += loss.count;
        return count;
    }
};

constexpr int64_t kShort = 50'000, kLong = 400'000;

OWN_PROCESS_TEST(NcclProxy, ASendsTimeIsDividedBetweenGpuPeerAndNetwork) {
    begin();
    for (const Plugin& plugin : kPlugins) {
        Job job(plugin);
        EXPECT_EQ(job.mask & (kProxyOp | kProxyStep), kProxyOp | kProxyStep);
        void* op = job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 5, 6, true));
        ASSERT_NE(op, nullptr);
        if (plugin.version > 3) job.tell(op, kInProgress);
        for (int step = 0; step < 2; ++step) {
            void* buffer = job.start(proxyStep(plugin.version, op, step));
            ASSERT_NE(buffer, nullptr);
            job.tell(buffer, kSendGpuWait);
            spin(kShort);
            if (plugin.version > 3) job.tell(buffer, kSendPeerWait);
            job.tell(buffer, kSendWait, bytesTold(1000));
            spin(kLong);
            job.stop(buffer);
        }
        if (plugin.version == 3) job.tell(op, kSendDoneV3, bytesTold(2000));
        job.stop(op);
        plugin.finalize(job.context);
    }
    finish();
    const auto collectives = all<capture::PluginCollRecord>(RecordType::pluginColl);
    ASSERT_EQ(ops().size(), std::size(kPlugins));
    for (size_t i = 0; i < ops().size(); ++i) {
        const capture::PluginProxyOpRecord op = ops()[i];
        EXPECT_EQ(op.pluginVersion, kPlugins[i].version);
        EXPECT_EQ(op.head.aux, static_cast<uint16_t>(capture::NcclOp::allReduce));
        EXPECT_EQ(op.commHash, 0xc0ffeeu);
        EXPECT_EQ(op.seqNumber, 41u);
        EXPECT_EQ(op.parentStartNs, collectives[i].startNs);
        EXPECT_EQ(op.parentSeq, collectives[i].seq);
        EXPECT_EQ(op.bytes, 2000u);
        EXPECT_EQ(op.steps, 2u);
        EXPECT_EQ(op.peer, 6);
        EXPECT_EQ(op.rank, 3);
        EXPECT_EQ(op.channel, 5);
        EXPECT_EQ(op.isSend, 1);
        EXPECT_EQ(op.flags, 0);
        EXPECT_GE(op.gpuWaitNs, 2 * kShort);
        EXPECT_GE(op.networkWaitNs, 2 * kLong);
        EXPECT_LE(op.gpuWaitNs + op.peerWaitNs + op.networkWaitNs, op.endNs - op.startNs);
    }
}

OWN_PROCESS_TEST(NcclProxy, AReceivesTimeIsDividedBetweenNetworkFlushAndGpu) {
    begin();
    const Plugin& plugin = kPlugins[2];
    const Job job(plugin);
    void* op = job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, false));
    void* buffer = job.start(proxyStep(plugin.version, op, 0));
    job.tell(buffer, kRecvWait);
    spin(kLong);
    job.tell(buffer, kRecvFlushWait, bytesTold(77));
    job.tell(buffer, kRecvGpuWait);
    spin(kShort);
    job.stop(buffer);
    job.stop(op);
    finish();
    ASSERT_EQ(ops().size(), 1u);
    EXPECT_EQ(ops()[0].isSend, 0);
    EXPECT_EQ(ops()[0].bytes, 77u);
    EXPECT_GE(ops()[0].networkWaitNs, kLong);
    EXPECT_GE(ops()[0].gpuWaitNs, kShort);
    EXPECT_LE(ops()[0].gpuWaitNs + ops()[0].peerWaitNs + ops()[0].networkWaitNs, ops()[0].endNs - ops()[0].startNs);
}

OWN_PROCESS_TEST(NcclProxy, TimeOfOverlappingStepsCountsOnce) {
    begin();
    const Plugin& plugin = kPlugins[2];
    const Job job(plugin);
    void* op = job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true));
    std::vector<void*> buffers;
    for (int step = 0; step < 8; ++step) {
        buffers.push_back(job.start(proxyStep(plugin.version, op, step)));
        job.tell(buffers.back(), kSendWait, bytesTold(10));
    }
    spin(kLong);
    for (void* buffer : buffers) job.stop(buffer);
    job.stop(op);
    finish();
    ASSERT_EQ(ops().size(), 1u);
    EXPECT_EQ(ops()[0].bytes, 80u);
    EXPECT_EQ(ops()[0].steps, 8u);
    EXPECT_GE(ops()[0].networkWaitNs, kLong);
    EXPECT_LE(ops()[0].networkWaitNs, ops()[0].endNs - ops()[0].startNs);
}

/// With PXN a proxy works for a rank of another process, whose pointers mean nothing here.
OWN_PROCESS_TEST(NcclProxy, WorkForAnotherProcessIsRecordedWithoutFollowingItsPointers) {
    begin();
    for (const Plugin& plugin : kPlugins) {
        Job job(plugin);
        job.context = reinterpret_cast<void*>(0x1000);
        void* op = job.start(proxyOp(plugin.version, reinterpret_cast<void*>(0x2000), getpid() + 1, 1, 7, true));
        ASSERT_NE(op, nullptr);
        void* buffer = job.start(proxyStep(plugin.version, op, 0));
        job.tell(buffer, kSendWait, bytesTold(5));
        job.stop(buffer);
        job.stop(op);
    }
    finish();
    ASSERT_EQ(ops().size(), std::size(kPlugins));
    for (const auto& op : ops()) {
        EXPECT_EQ(op.flags, 1);
        EXPECT_EQ(op.commHash, 0u);
        EXPECT_EQ(op.parentStartNs, 0);
        EXPECT_EQ(op.peer, 7);
        EXPECT_EQ(op.rank, 3);
    }
}

OWN_PROCESS_TEST(NcclProxy, MoreOpsThanThereIsRoomForAreACountedLoss) {
    begin();
    const Plugin& plugin = kPlugins[2];
    const Job job(plugin);
    std::vector<void*> open;
    for (uint32_t i = 0; i < kProxyOps; ++i) {
        open.push_back(job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true)));
        ASSERT_NE(open.back(), nullptr);
    }
    EXPECT_EQ(job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true)), nullptr);
    EXPECT_EQ(job.start(proxyStep(plugin.version, nullptr, 0)), nullptr) << "a step of an op that was not taken";
    for (void* op : open) job.stop(op);
    EXPECT_NE(job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true)), nullptr) << "room again";
    finish();
    EXPECT_EQ(ops().size(), kProxyOps);
    EXPECT_EQ(lostOps(), 1u);
}

OWN_PROCESS_TEST(NcclProxy, EndedHandlesDoNothing) {
    begin();
    const Plugin& plugin = kPlugins[2];
    const Job job(plugin);
    void* op = job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true));
    void* buffer = job.start(proxyStep(plugin.version, op, 0));
    EXPECT_EQ(job.start(proxyStep(plugin.version, op, 8)), nullptr) << "NCCL has no more than 8 in flight";
    job.stop(buffer);
    job.tell(buffer, kSendWait, bytesTold(5));
    job.stop(buffer);
    job.stop(op);
    job.stop(op);
    job.tell(op, kInProgress);
    EXPECT_EQ(job.start(proxyStep(plugin.version, op, 0)), nullptr);
    finish();
    ASSERT_EQ(ops().size(), 1u);
    EXPECT_EQ(ops()[0].bytes, 0u);
}

OWN_PROCESS_TEST(NcclProxy, SwitchedOffItAsksForNothingAndRecordsNothing) {
    begin({{"RANKSCOPE_NCCL_PROXY", "0"}});
    for (const Plugin& plugin : kPlugins) {
        const Job job(plugin);
        EXPECT_EQ(job.mask & (kProxyOp | kProxyStep), 0);
        EXPECT_EQ(job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true)), nullptr);
    }
    finish();
    EXPECT_TRUE(ops().empty());
}

OWN_PROCESS_TEST(NcclProxy, TheUsersPluginGetsItsOwnHandlesAndNothingOfOtherProcesses) {
    setenv("RANKSCOPE_CHAIN_NCCL_PROFILER", RANKSCOPE_TEST_CHAINED_PROFILER, 1);
    setenv("CHAINED_PROFILER_PROXY", "1", 1);
    begin();
    for (const Plugin& plugin : kPlugins) {
        const Job job(plugin);
        const auto& theirs = *static_cast<const ChainedProfilerLog*>(
            dlsym(dlopen(RANKSCOPE_TEST_CHAINED_PROFILER, RTLD_NOW), "chainedProfilerLog"));
        void* op = job.start(proxyOp(plugin.version, job.collectiveEvent, getpid(), 0, 2, true));
        EXPECT_EQ(theirs.parentOfLast, theirs.handleOfFirst);
        void* buffer = job.start(proxyStep(plugin.version, op, 0));
        EXPECT_EQ(theirs.starts, 3);
        job.tell(buffer, kSendWait, bytesTold(5));
        job.stop(buffer);
        job.stop(op);
        EXPECT_EQ(theirs.states, 1);
        EXPECT_EQ(theirs.stops, 3);
        job.stop(job.start(proxyOp(plugin.version, reinterpret_cast<void*>(0x2000), getpid() + 1, 1, 7, true)));
        EXPECT_EQ(theirs.starts, 3);
        EXPECT_EQ(theirs.foreignHandles, 0);
    }
    finish();
    EXPECT_EQ(ops().size(), 2 * std::size(kPlugins));
}

}  // namespace
