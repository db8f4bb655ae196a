// SPDX-License-Identifier: Apache-2.0
// NCCL's calls into the profiler plugin: collectives, messages, channels, and the user's own plugin behind ours.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/injector/nccl_plugin/chained_profiler.h"
#include "tests/unit/injector/nccl_plugin/nccl_descriptors.h"
#include "tests/unit/injector/recorded_session.h"

using namespace rankscope;
using namespace rankscope::injector;
using capture::RecordType;
using namespace rankscope::injector::test;

namespace {

struct NcclPlugin : RecordedSession {
    void setUp() { start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nccl"}, {"RANKSCOPE_NCCL_CHANNELS", "1"}}); }
    std::vector<capture::PluginCollRecord> events(RecordType type) const {
        return all<capture::PluginCollRecord>(type);
    }
};

OWN_PROCESS_TEST(NcclPlugin, ACollectiveOfEveryVersionIsRecordedWithWhatNcclChose) {
    for (const Plugin& plugin : kPlugins) {
        void* context = nullptr;
        int mask = 0;
        ASSERT_EQ(plugin.init(&context, &mask), 0);
        EXPECT_EQ(mask & (kColl | kP2p), kColl | kP2p) << plugin.version;
        EXPECT_EQ(mask & kGroup, 0) << plugin.version;
        Descriptor descriptor = collective(plugin.version, 3);
        void* handle = nullptr;
        EXPECT_EQ(plugin.startEvent(context, &handle, descriptor.at()), 0);
        ASSERT_NE(handle, nullptr);
        EXPECT_EQ(plugin.stopEvent(handle), 0);
        EXPECT_EQ(plugin.finalize(context), 0);
    }
    finish();
    const auto recorded = events(RecordType::pluginColl);
    ASSERT_EQ(recorded.size(), std::size(kPlugins));
    for (size_t i = 0; i < recorded.size(); ++i) {
        const capture::PluginCollRecord& event = recorded[i];
        EXPECT_EQ(event.pluginVersion, kPlugins[i].version);
        EXPECT_EQ(event.head.aux, static_cast<uint16_t>(capture::NcclOp::allReduce));
        EXPECT_EQ(event.commHash, 0xc0ffeeu);
        EXPECT_EQ(event.seqNumber, 41u);
        EXPECT_EQ(event.count, 1000u);
        EXPECT_EQ(event.peerOrRoot, 2);
        EXPECT_EQ(event.rank, 3);
        EXPECT_EQ(event.dataType, 9);
        EXPECT_EQ(event.nChannels, 16);
        EXPECT_EQ(event.nWarps, 8);
        EXPECT_EQ(event.algorithm, static_cast<uint8_t>(capture::Algorithm::ring));
        EXPECT_EQ(event.protocol, static_cast<uint8_t>(capture::Protocol::ll128));
        EXPECT_LE(event.startNs, event.endNs);
    }
}

OWN_PROCESS_TEST(NcclPlugin, ASendOfEveryVersionIsRecorded) {
    for (const Plugin& plugin : kPlugins) {
        void* context = nullptr;
        void* handle = nullptr;
        int mask = 0;
        plugin.init(&context, &mask);
        Descriptor descriptor = message(plugin.version, 6);
        plugin.startEvent(context, &handle, descriptor.at());
        plugin.stopEvent(handle);
        plugin.stopEvent(handle);  // NCCL does not, but a second record would be a lie
    }
    finish();
    const auto recorded = events(RecordType::pluginP2p);
    ASSERT_EQ(recorded.size(), std::size(kPlugins));
    for (size_t i = 0; i < recorded.size(); ++i) {
        EXPECT_EQ(recorded[i].pluginVersion, kPlugins[i].version);
        EXPECT_EQ(recorded[i].head.aux, static_cast<uint16_t>(capture::NcclOp::send));
        EXPECT_EQ(recorded[i].commHash, 0xc0ffeeu);
        EXPECT_EQ(recorded[i].count, 77u);
        EXPECT_EQ(recorded[i].peerOrRoot, 5);
        EXPECT_EQ(recorded[i].rank, 6);
        EXPECT_EQ(recorded[i].dataType, 7);
        EXPECT_EQ(recorded[i].nChannels, kPlugins[i].version == 3 ? 0 : 4);
        EXPECT_EQ(recorded[i].algorithm, static_cast<uint8_t>(capture::Algorithm::unknown));
    }
}

OWN_PROCESS_TEST(NcclPlugin, KernelChannelsCarryTheGpusTimeAndTheirCollective) {
    for (const Plugin& plugin : kPlugins) {
        void* context = nullptr;
        void* parent = nullptr;
        void* handle = nullptr;
        int mask = 0;
        plugin.init(&context, &mask);
        // v3 tells no GPU time, so its channels are not asked for.
        EXPECT_EQ((mask & kKernelChannel) != 0, plugin.version > 3);
        if (plugin.version == 3) continue;
        Descriptor coll = collective(plugin.version, 3);
        plugin.startEvent(context, &parent, coll.at());
        Descriptor channel = head(plugin.version, kKernelChannel, parent, 3);
        channel.put<uint8_t>(24, 11).put<uint64_t>(32, 5'000);
        plugin.startEvent(context, &handle, channel.at());
        Descriptor stop;
        stop.put<uint64_t>(0, 9'000);
        plugin.recordEventState(handle, kKernelChannelStop, stop.at());
        plugin.stopEvent(handle);
        plugin.stopEvent(parent);
    }
    finish();
    const auto channels = all<capture::PluginChannelRecord>(RecordType::pluginKernelChannel);
    const auto collectives = events(RecordType::pluginColl);
    ASSERT_EQ(channels.size(), std::size(kPlugins) - 1);
    ASSERT_EQ(collectives.size(), std::size(kPlugins) - 1);
    for (size_t i = 0; i < channels.size(); ++i) {
        EXPECT_EQ(channels[i].head.aux, 11);
        EXPECT_EQ(channels[i].startNs, 5'000);
        EXPECT_EQ(channels[i].endNs, 9'000);
        EXPECT_EQ(channels[i].commHash, 0xc0ffeeu);
        EXPECT_EQ(channels[i].seq, collectives[i].seq);
    }
}

struct NcclPluginSpans : NcclPlugin {
    void setUp() { start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nccl"}, {"RANKSCOPE_NCCL_CHANNELS", "spans"}}); }
};

OWN_PROCESS_TEST(NcclPluginSpans, ChannelsOfAnOperationBecomeOneRecordAlsoWhereSomeAreNeverTold) {
    const Plugin& plugin = *std::ranges::find(kPlugins, 4, &Plugin::version);
    void* context = nullptr;
    int mask = 0;
    plugin.init(&context, &mask);
    EXPECT_NE(mask & kKernelChannel, 0);
    const auto play = [&](void* parent, uint64_t startNs, uint64_t endNs) {
        void* handle = nullptr;
        Descriptor channel = head(plugin.version, kKernelChannel, parent, 3);
        channel.put<uint8_t>(24, 1).put<uint64_t>(32, startNs);
        plugin.startEvent(context, &handle, channel.at());
        Descriptor stop;
        stop.put<uint64_t>(0, endNs);
        plugin.recordEventState(handle, kKernelChannelStop, stop.at());
        plugin.stopEvent(handle);
    };
    void* whole = nullptr;
    void* part = nullptr;
    Descriptor coll = collective(plugin.version, 3);  // of 16 channels
    plugin.startEvent(context, &whole, coll.at());
    plugin.startEvent(context, &part, coll.at());
    play(whole, 5'000, 9'000);
    play(whole, 4'000, 8'000);
    play(part, 7'000, 7'500);
    play(whole, 6'000, 9'500);
    for (int i = 0; i < 13; ++i) play(whole, 5'500, 6'000);
    plugin.stopEvent(whole);
    plugin.stopEvent(part);
    plugin.finalize(context);
    finish();
    const auto spans = all<capture::PluginChannelRecord>(RecordType::pluginKernelChannel);
    const auto collectives = events(RecordType::pluginColl);
    ASSERT_EQ(spans.size(), 2u);
    ASSERT_EQ(collectives.size(), 2u);
    for (const auto& span : spans) EXPECT_EQ(span.head.aux, capture::kAllChannels);
    EXPECT_EQ(spans[0].startNs, 4'000);
    EXPECT_EQ(spans[0].endNs, 9'500);
    EXPECT_EQ(spans[0].seq, collectives[0].seq);
    EXPECT_EQ(spans[1].startNs, 7'000);
    EXPECT_EQ(spans[1].endNs, 7'500);
    EXPECT_EQ(spans[1].seq, collectives[1].seq);
}

OWN_PROCESS_TEST(NcclPlugin, EventsThatNobodyAskedForAndForeignHandlesDoNothing) {
    for (const Plugin& plugin : kPlugins) {
        void* context = nullptr;
        void* handle = &context;
        int mask = 0;
        plugin.init(&context, &mask);
        Descriptor group = head(plugin.version, kGroup, nullptr, 0);
        EXPECT_EQ(plugin.startEvent(context, &handle, group.at()), 0);
        EXPECT_EQ(handle, nullptr);
        EXPECT_EQ(plugin.startEvent(nullptr, &handle, group.at()), 0);
        int elsewhere = 0;  // with PXN a handle comes from another process
        EXPECT_EQ(plugin.stopEvent(&elsewhere), 0);
        EXPECT_EQ(plugin.stopEvent(nullptr), 0);
        EXPECT_EQ(plugin.recordEventState(&elsewhere, kKernelChannelStop, nullptr), 0);
        EXPECT_EQ(plugin.finalize(nullptr), 0);
    }
    finish();
    EXPECT_TRUE(events(RecordType::pluginColl).empty());
    EXPECT_TRUE(events(RecordType::pluginP2p).empty());
}

OWN_PROCESS_TEST(NcclPlugin, NoMoreContextsThanTheTableHoldsAndNoneIsLostForGood) {
    const Plugin& plugin = kPlugins[2];
    std::vector<void*> contexts;
    int mask = 0;
    for (void* context = nullptr;; context = nullptr) {
        ASSERT_EQ(plugin.init(&context, &mask), 0);
        if (context == nullptr) break;
        contexts.push_back(context);
        ASSERT_LT(contexts.size(), 100'000u);
    }
    EXPECT_GE(contexts.size(), 1000u);
    plugin.finalize(contexts.back());
    void* again = nullptr;
    plugin.init(&again, &mask);
    EXPECT_EQ(again, contexts.back());
    finish();
}

// --- the user's own plugin ---

struct ChainedNcclPlugin : RecordedSession {
    void startWith(const char* plugin) {
        setenv("RANKSCOPE_CHAIN_NCCL_PROFILER", plugin, 1);
        start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nccl"}});
    }
    static const ChainedProfilerLog& log(const char* plugin = RANKSCOPE_TEST_CHAINED_PROFILER) {
        void* library = dlopen(plugin, RTLD_NOW);
        return *static_cast<const ChainedProfilerLog*>(dlsym(library, "chainedProfilerLog"));
    }
};

OWN_PROCESS_TEST(ChainedNcclPlugin, EveryCallReachesItWithItsOwnHandlesAndOursIsRecordedToo) {
    startWith(RANKSCOPE_TEST_CHAINED_PROFILER);
    for (const Plugin& plugin : kPlugins) {
        void* context = nullptr;
        int mask = 0;
        ASSERT_EQ(plugin.init(&context, &mask), 0);
        EXPECT_EQ(mask & kGroup, kGroup) << "it asked for groups";
        void* group = nullptr;
        Descriptor groupEvent = head(plugin.version, kGroup, nullptr, 3);
        plugin.startEvent(context, &group, groupEvent.at());
        ASSERT_NE(group, nullptr) << plugin.version;
        Descriptor coll = collective(plugin.version, 3);
        coll.put<void*>(8, group);
        if (plugin.version >= 5) coll.put<void*>(104, group);
        void* handle = nullptr;
        plugin.startEvent(context, &handle, coll.at());
        EXPECT_EQ(coll.get<void*>(8), group) << "NCCL's descriptor is as it was";
        if (plugin.version >= 5) {
            EXPECT_EQ(coll.get<void*>(104), group);
        }
        plugin.recordEventState(handle, 9, nullptr);
        plugin.stopEvent(handle);
        plugin.stopEvent(group);
        plugin.finalize(context);

        const ChainedProfilerLog& theirs = log();
        // NCCL speaks v6 or v7 and the plugin only v5: they are the same table.
        EXPECT_EQ(theirs.lastVersion, std::min(plugin.version, 5));
        EXPECT_EQ(theirs.starts, 2) << plugin.version;
        EXPECT_EQ(theirs.stops, 2);
        EXPECT_EQ(theirs.states, 1);
        EXPECT_EQ(theirs.lastState, 9);
        EXPECT_EQ(theirs.finalized, 1);
        EXPECT_EQ(theirs.parentOfLast, theirs.handleOfFirst) << "a parent is named by the plugin's own handle";
        if (plugin.version >= 5) {
            EXPECT_EQ(theirs.groupOfLast, theirs.handleOfFirst);
        }
        EXPECT_EQ(theirs.foreignHandles, 0);
    }
    finish();
    EXPECT_EQ(all<capture::PluginCollRecord>(RecordType::pluginColl).size(), std::size(kPlugins));
}

OWN_PROCESS_TEST(ChainedNcclPlugin, OneOfVersion7GetsTagsAndPhasesOfKernels) {
    setenv("CHAINED_PROFILER_PHASES", "1", 1);
    startWith(RANKSCOPE_TEST_CHAINED_PROFILER_V7);
    const Plugin& plugin = kPlugins[4];
    ASSERT_EQ(plugin.version, 7);
    void* context = nullptr;
    int mask = 0;
    ASSERT_EQ(plugin.init(&context, &mask), 0);
    EXPECT_EQ(mask & kKernelPhase, kKernelPhase) << "it asked for phases";
    Descriptor coll = collective(7, 3);
    void* parent = nullptr;
    plugin.startEvent(context, &parent, coll.at());
    Descriptor phase = head(7, kKernelPhase, parent, 3);
    phase.put<uint8_t>(24, 11).put<uint8_t>(25, 1).put<const char*>(32, "compute").put<uint64_t>(40, 5'000);
    void* handle = nullptr;
    plugin.startEvent(context, &handle, phase.at());
    ASSERT_NE(handle, nullptr);
    Descriptor stop;
    stop.put<uint64_t>(0, 9'000);
    plugin.recordEventState(handle, kKernelPhaseStop, stop.at());
    plugin.stopEvent(handle);
    plugin.stopEvent(parent);
    plugin.finalize(context);
    const ChainedProfilerLog& theirs = log(RANKSCOPE_TEST_CHAINED_PROFILER_V7);
    EXPECT_EQ(theirs.lastVersion, 7);
    EXPECT_EQ(theirs.starts, 2);
    EXPECT_EQ(theirs.userTag, kUserTag);
    EXPECT_EQ(theirs.lastState, kKernelPhaseStop);
    EXPECT_EQ(theirs.parentOfLast, theirs.handleOfFirst);
    EXPECT_EQ(theirs.foreignHandles, 0);
    finish();
    EXPECT_EQ(all<capture::PluginCollRecord>(RecordType::pluginColl).size(), 1u);
    EXPECT_TRUE(all<capture::PluginChannelRecord>(RecordType::pluginKernelChannel).empty())
        << "a phase is no channel of ours";
}

OWN_PROCESS_TEST(ChainedNcclPlugin, OneThatCannotBeOpenedIsNamedAndOursGoesOn) {
    startWith("/nowhere/libnccl-profiler-gone.so");
    void* context = nullptr;
    int mask = 0;
    ASSERT_EQ(kPlugins[2].init(&context, &mask), 0);
    EXPECT_EQ(mask & kColl, kColl);
    finish();
    bool told = false;
    for (const auto& [status, message] : statuses(capture::Source::ncclPlugin))
        told = told || message.find("cannot be opened") != std::string::npos;
    EXPECT_TRUE(told);
}

}  // namespace
