// SPDX-License-Identifier: Apache-2.0
#include "injector/light/light_recorder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "injector/capture_format/block_writer.h"
#include "injector/capture_format/reader.h"
#include "tests/unit/injector/temporary_folder.h"

using namespace rankscope::capture;
using namespace rankscope::injector;

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kBegin = 1000 * kMs;
constexpr int64_t kUnit = 1 << kFoldUnitBits;
constexpr uint64_t kHash = 0xabcdef;
constexpr uint64_t kStepName = 77;

/// One process of a job in light mode, whose records the test makes.
class LightRecording : public testing::Test {
  protected:
    void SetUp() override {
        FileHeader header{};
        header.processStartNs = kBegin;
        ASSERT_TRUE(m_cap.open((m_base + ".cap").c_str(), header, 0));
        m_recorder.begin(*m_tables, {&write, &countLoss, this, {&m_slowSteps, 1'500'000'000}}, 100 * kMs,
                         m_base.c_str(), header);
        CommunicatorRecord communicator{};
        communicator.head = {RecordType::communicator, 2, 1};
        communicator.index = 1;
        communicator.hash = kHash;
        take(communicator);
        struct {
            StringRecord record;
            char text[16];
        } name{{{RecordType::string, 1, 10}, 10, kStepName}, "train_step"};
        take(name);
    }

    template <typename Record>
    void take(const Record& record) {
        m_recorder.take(5, reinterpret_cast<const uint8_t*>(&record), ++m_position);
    }

    void mark(RecordType type, int64_t ns, uint64_t name) {
        NvtxRecord record{};
        record.head = {type, 2, 0};
        record.timeNs = ns;
        record.name = name;
        take(record);
    }

    /// As the hooks, the plugin and its proxy tell it; the device begins `queued` later and is busy for a millisecond.
    /// `proxyFirst`: the ring of NCCL's proxy is read before that of the thread that called.
    void call(int64_t startNs, uint64_t count, int64_t queuedNs, bool hasSpan = true, bool proxyFirst = false) {
        if (proxyFirst) tellProxy(m_seq, startNs, queuedNs, hasSpan);
        PluginCollRecord plugin{};
        plugin.head = {RecordType::pluginColl, 2, static_cast<uint16_t>(NcclOp::allReduce)};
        plugin.seq = m_seq++;
        plugin.startNs = plugin.endNs = startNs + 10;
        plugin.commHash = kHash;
        plugin.algorithm = static_cast<uint8_t>(Algorithm::ring);
        plugin.nChannels = 4;
        take(plugin);
        NcclCallRecord call{};
        call.head = {RecordType::ncclCall, 2, static_cast<uint16_t>(NcclOp::allReduce)};
        call.seq = m_seq++;
        call.startNs = startNs;
        call.endNs = startNs + 20;
        call.count = count;
        call.communicator = 1;
        call.peerOrRoot = -1;
        take(call);
        if (!proxyFirst) tellProxy(plugin.seq, startNs, queuedNs, hasSpan);
    }

    void tellProxy(uint32_t seq, int64_t startNs, int64_t queuedNs, bool hasSpan) {
        for (int channel = 0; channel < 2; ++channel) {
            PluginProxyOpRecord send{};
            send.head = {RecordType::pluginProxyOp, 3, static_cast<uint16_t>(NcclOp::allReduce)};
            send.parentSeq = seq;
            send.parentStartNs = startNs + 10;
            send.startNs = send.endNs = startNs + queuedNs;
            send.commHash = kHash;
            send.peer = 3;
            send.isSend = 1;
            send.bytes = 1000;
            send.networkWaitNs = (channel + 1) * 100 * kUnit;
            take(send);
        }
        if (!hasSpan) return;
        PluginChannelRecord span{};
        span.head = {RecordType::pluginKernelChannel, 1, kAllChannels};
        span.seq = seq;
        span.startNs = startNs + queuedNs;
        span.endNs = span.startNs + kMs;
        span.commHash = kHash;
        take(span);
    }

    void end() {
        m_recorder.endOfRing();
        m_recorder.finish();
        m_cap.close();
    }

    struct Told {
        std::vector<int64_t> calls, pushes, pops;
        std::vector<PluginProxyOpRecord> sends;
        std::map<std::pair<uint64_t, uint32_t>, int> plugins;  // by communicator and seq
        int spans = 0;
        std::vector<CallGapRecord> gaps;
        std::vector<ReaderLoss> losses;
    };
    Told read() {
        Told told;
        CaptureReader reader(m_base + ".cap");
        while (const RecordView* view = reader.next()) {
            if (view->type() != RecordType::communicator && view->type() != RecordType::string) {
                EXPECT_EQ(view->type() == RecordType::fold, false);
            }
            switch (view->type()) {
                case RecordType::ncclCall:
                    told.calls.push_back(view->as<NcclCallRecord>().startNs);
                    break;
                case RecordType::pluginColl:
                    ++told.plugins[{view->as<PluginCollRecord>().commHash, view->as<PluginCollRecord>().seq}];
                    break;
                case RecordType::pluginKernelChannel:
                    told.spans += told.plugins.count({kHash, view->as<PluginChannelRecord>().seq}) > 0;
                    break;
                case RecordType::pluginProxyOp:
                    told.sends.push_back(view->as<PluginProxyOpRecord>());
                    break;
                case RecordType::nvtxPush:
                    told.pushes.push_back(view->as<NvtxRecord>().timeNs);
                    break;
                case RecordType::nvtxPop:
                    told.pops.push_back(view->as<NvtxRecord>().timeNs);
                    break;
                case RecordType::callGap:
                    told.gaps.push_back(view->as<CallGapRecord>());
                    break;
                default:
                    break;
            }
        }
        told.losses = reader.losses();
        return told;
    }

    std::vector<std::string> detailFiles() {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(m_folder.path()))
            if (entry.path().extension() == ".detail") names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    }

    static void write(void* to, uint32_t thread, const void* records, size_t bytes, uint32_t count,
                      int64_t lastNs) noexcept {
        BlockInfo info;
        info.threadIndex = thread;
        info.recordCount = count;
        info.highWaterNs = lastNs;
        EXPECT_EQ(static_cast<LightRecording*>(to)->m_cap.append(info, records, bytes), AppendResult::ok);
    }
    static void countLoss(void* to, LossKind, uint64_t count, int64_t) noexcept {
        static_cast<LightRecording*>(to)->m_lost += count;
    }

    TemporaryFolder m_folder;
    std::string m_base = m_folder.path() + "/host.1.2";
    std::unique_ptr<LightTables> m_tables = std::make_unique<LightTables>();
    LightRecorder m_recorder;
    BlockWriter m_cap;
    uint64_t m_position = 0;
    uint64_t m_lost = 0;
    uint64_t m_slowSteps = 0;
    uint32_t m_seq = 0;
};

std::vector<int64_t> inUnits(std::vector<int64_t> times) {
    for (int64_t& ns : times) ns /= kUnit;
    return times;
}

}  // namespace

TEST_F(LightRecording, EachCallIsToldOnceWhateverPartOfItTheRingHolds) {
    std::vector<int64_t> calls, pushes, pops;
    for (int step = 0; step < 40; ++step) {
        const int64_t ns = kBegin + step * 20 * kMs;
        mark(RecordType::nvtxPush, ns, kStepName);
        mark(RecordType::nvtxPush, ns + 1, 5);  // a part of the step
        mark(RecordType::nvtxPop, ns + 2, 0);
        for (int i = 0; i < 3; ++i) call(calls.emplace_back(ns + (i + 1) * kMs), 100, 15 * kMs);
        mark(RecordType::nvtxPop, pops.emplace_back(ns + 19 * kMs), 0);
        pushes.push_back(ns);
        if (step % 7 == 0) m_recorder.endOfRing();
    }
    end();
    EXPECT_EQ(m_lost, 0u);
    EXPECT_EQ(detailFiles().size(), 2u);
    const Told told = read();
    EXPECT_TRUE(told.losses.empty()) << told.losses.front().message;
    EXPECT_EQ(inUnits(told.calls), inUnits(calls));
    EXPECT_EQ(told.plugins.size(), calls.size());
    EXPECT_EQ(told.spans, static_cast<int>(calls.size()));
    for (const auto& [name, count] : told.plugins) EXPECT_EQ(count, 1);
    // Parts of steps are told by the ring alone.
    EXPECT_EQ(told.pushes.size(), told.pops.size());
    EXPECT_GT(told.pushes.size(), pushes.size());
    EXPECT_LT(told.pushes.size(), 2 * pushes.size());
    std::set<int64_t> marks;
    for (const int64_t ns : told.pushes) marks.insert(ns / kUnit);
    for (const int64_t ns : pushes) EXPECT_EQ(marks.count(ns / kUnit), 1u) << ns;

    // Of the network, what a call's channels carried together, and the longest time of one.
    ASSERT_GT(told.sends.size(), calls.size());
    EXPECT_EQ(told.sends[0].bytes, 2000u);
    EXPECT_EQ(told.sends[0].channel, kEveryChannel);
    EXPECT_EQ(told.sends[0].networkWaitNs, 200 * kUnit);
    EXPECT_EQ(told.sends.back().bytes, 1000u);
}

TEST_F(LightRecording, AStepOfAThousandCallsTakesAKilobyteOnAverageAndOfWhatIsLeftOutTheCallsAreCounted) {
    constexpr int kSteps = 300, kCalls = 1000;
    constexpr int64_t kStepNs = 20 * kMs;  // a fifth of the ring
    std::mt19937 random(7);
    for (int step = 0; step < kSteps; ++step) {
        const int64_t ns = kBegin + step * kStepNs;
        mark(RecordType::nvtxPush, ns, kStepName);
        // Of 40 sizes, and each begins when it happens to.
        for (int i = 0; i < kCalls; ++i)
            call(ns + (i + 1) * kStepNs / (kCalls + 2) + random() % 10'000, 100 + i % 40,
                 50 * kUnit + random() % 100'000);
        mark(RecordType::nvtxPop, ns + kStepNs - 1000, 0);
        m_recorder.endOfRing();
    }
    end();
    EXPECT_EQ(m_lost, 0u);
    EXPECT_LE(fs::file_size(m_base + ".cap"), size_t{kSteps} * 1000 + kFileHeaderBytes);
    const Told told = read();
    EXPECT_TRUE(told.losses.empty()) << told.losses.front().message;
    int64_t leftOut = 0;
    for (const CallGapRecord& gap : told.gaps) {
        leftOut += gap.calls;
        EXPECT_EQ(gap.communicator, 1u);
        EXPECT_EQ(gap.peer, -1);
    }
    EXPECT_EQ(leftOut + static_cast<int64_t>(told.calls.size()), int64_t{kSteps} * kCalls);
    // What is kept are whole steps, each so many behind the one before; the ring holds all of the last ones, and of one
    // the end.
    std::map<int64_t, int> perStep;
    for (const int64_t ns : told.calls)
        if (const int64_t step = (ns - kBegin) / kStepNs; step < kSteps - 12) ++perStep[step];
    std::set<int64_t> distances;
    int64_t before = -1;
    for (const auto& [step, calls] : perStep) {
        EXPECT_EQ(calls, kCalls) << step;
        if (before > 0) distances.insert(step - before);
        before = step;
    }
    EXPECT_EQ(distances.size(), 1u);
    EXPECT_GT(*distances.begin(), 3);
    for (const CallGapRecord& gap : told.gaps)
        for (const auto& [step, calls] : perStep) {
            const int64_t begin = kBegin + step * kStepNs;
            EXPECT_FALSE(gap.untilNs > begin && gap.fromNs < begin + kStepNs) << step;
        }
}

TEST_F(LightRecording, AHugeStepIsLeftOutAndDoesNotFillTheFile) {
    for (int step = 0; step < 3; ++step) {
        const int64_t ns = kBegin + step * 90 * kMs;
        mark(RecordType::nvtxPush, ns, kStepName);
        for (int i = 0; i < 40'000; ++i) call(ns + (i + 1) * 2000, 100 + i % 7, (i * 7919 % 2000) * 1000);
        m_recorder.endOfRing();
    }
    end();
    EXPECT_LT(fs::file_size(m_base + ".cap"), 100'000u);
    const Told told = read();
    int64_t leftOut = 0;
    for (const CallGapRecord& gap : told.gaps) leftOut += gap.calls;
    EXPECT_EQ(leftOut + static_cast<int64_t>(told.calls.size()), 120'000);
}

TEST_F(LightRecording, ACommunicatorThatIsKnownNoMoreIsNotTakenForTheOneInItsPlace) {
    CommunicatorRecord later{};
    later.head = {RecordType::communicator, 2, 1};
    later.index = 1 + 4096;
    later.hash = 0x777;
    take(later);
    call(kBegin, 100, kMs);  // on communicator 1
    end();
    EXPECT_EQ(m_lost, 1u);
    for (const std::string& name : detailFiles()) fs::remove(m_folder.path() + "/" + name);
    const Told told = read();
    EXPECT_EQ(told.calls.size(), 1u);
    EXPECT_TRUE(told.plugins.empty());
}

TEST_F(LightRecording, WithoutTheFilesOfTheRingTheCaptureFileTellsAllCalls) {
    std::vector<int64_t> calls;
    for (int i = 0; i < 50; ++i) call(calls.emplace_back(kBegin + i * 10 * kMs), 100, kMs);
    end();
    for (const std::string& name : detailFiles()) fs::remove(m_folder.path() + "/" + name);
    EXPECT_EQ(inUnits(read().calls), inUnits(calls));
}

/// A folder that has not changed is not looked through again; one that has changed is.
TEST_F(LightRecording, FilesOfTheRingThatComeAfterAReadingAreSeen) {
    for (int i = 0; i < 50; ++i) call(kBegin + i * 10 * kMs, 100, kMs);
    end();
    LossList losses;
    const auto hasFiles = [&] {
        return DetailReader(m_base, CaptureReader(m_base + ".cap").header().processStartNs, losses).sinceNs() !=
               INT64_MAX;
    };
    const fs::path aside = m_folder.path() + "/aside";
    const auto move = [](const fs::path& from, const fs::path& to, const std::vector<std::string>& names) {
        for (const std::string& name : names) fs::rename(from / name, to / name);
    };
    const std::vector<std::string> names = detailFiles();
    ASSERT_FALSE(names.empty());
    fs::create_directory(aside);
    move(m_folder.path(), aside, names);
    const fs::file_time_type longAgo = fs::file_time_type::clock::now() - 1h;
    fs::last_write_time(m_folder.path(), longAgo);
    EXPECT_FALSE(hasFiles());
    move(aside, m_folder.path(), names);
    EXPECT_TRUE(hasFiles()) << "the folder has another time";
    // That it is known by its time alone, files that come without a new one show.
    move(m_folder.path(), aside, names);
    fs::last_write_time(m_folder.path(), longAgo);
    EXPECT_FALSE(hasFiles());
    move(aside, m_folder.path(), names);
    fs::last_write_time(m_folder.path(), longAgo);
    EXPECT_FALSE(hasFiles()) << "it was looked through again";
    // Such a time tells nothing while it is new: a change in the same tick of the clock leaves it as it is.
    move(m_folder.path(), aside, names);
    const fs::file_time_type now = fs::file_time_type::clock::now();
    fs::last_write_time(m_folder.path(), now);
    EXPECT_FALSE(hasFiles());
    move(aside, m_folder.path(), names);
    fs::last_write_time(m_folder.path(), now);
    EXPECT_TRUE(hasFiles()) << "a time of just now was relied on";
}

TEST_F(LightRecording, OfAKilledProcessFilesAndRingTellEachCallOnce) {
    std::vector<int64_t> calls;
    for (int i = 0; i < 50; ++i) {
        call(calls.emplace_back(kBegin + i * 10 * kMs), 100, 2 * kMs);
        m_recorder.endOfRing();
    }
    EXPECT_EQ(inUnits(read().calls), inUnits(calls));  // nothing was finished
}

TEST_F(LightRecording, ACallWithoutItsTimeOnTheDeviceWaitsForItAndIsToldWithoutItInTheEnd) {
    call(kBegin, 100, kMs);
    call(kBegin + kMs, 100, kMs, false);
    for (int i = 2; i < 9; ++i) call(kBegin + i * kMs, 100, kMs);
    end();
    for (const std::string& name : detailFiles()) fs::remove(m_folder.path() + "/" + name);
    const Told told = read();
    EXPECT_EQ(told.calls.size(), 9u);
    EXPECT_EQ(told.spans, 8);
}

TEST_F(LightRecording, WhatTheProxysRingTellsBeforeTheCallsRingIsReadBelongsToTheCall) {
    constexpr int kCalls = 50;
    for (int i = 0; i < kCalls; ++i) call(kBegin + i * 20 * kMs, 1000, kMs, true, true);
    end();
    for (const std::string& name : detailFiles()) fs::remove(m_folder.path() + "/" + name);
    const Told told = read();
    EXPECT_EQ(told.calls.size(), size_t{kCalls});
    EXPECT_EQ(told.spans, kCalls);
    EXPECT_EQ(told.sends.size(), size_t{kCalls});
}

TEST_F(LightRecording, ARingThatCannotBeWrittenIsALossAndTheCallsAreToldStill) {
    call(kBegin, 100, kMs);
    m_recorder.endOfRing();
    // Where the next file belongs, something else is.
    fs::create_directory(m_base + ".1.detail");
    for (int i = 1; i < 15; ++i) call(kBegin + i * 10 * kMs, 100, kMs);
    end();
    EXPECT_GT(m_lost, 0u);
    EXPECT_EQ(read().calls.size(), 15u);
}

TEST_F(LightRecording, ARangeThatTheRingHoldsOnlyTheEndOfIsWholeWhetherTheProcessEndedOrWasKilled) {
    for (int step = 0; step < 20; ++step) {
        const int64_t ns = kBegin + step * 45 * kMs;
        mark(RecordType::nvtxPush, ns, kStepName);
        mark(RecordType::nvtxPush, ns + kMs, 5);
        call(ns + 20 * kMs, 100, kMs);
        mark(RecordType::nvtxPop, ns + 40 * kMs, 0);
        mark(RecordType::nvtxPop, ns + 44 * kMs, 0);
    }
    m_recorder.endOfRing();
    for (const bool ended : {false, true}) {
        if (ended) end();
        const Told told = read();
        EXPECT_EQ(told.pushes.size(), told.pops.size()) << ended;
        std::set<int64_t> pops;
        for (const int64_t ns : told.pops) pops.insert(ns / kUnit);
        for (int step = 0; step < 20; ++step)
            EXPECT_EQ(pops.count((kBegin + (step * 45 + 44) * kMs) / kUnit), 1u) << step << " " << ended;
    }
}

TEST_F(LightRecording, AStepThatTakesMoreThanItsShareOfTheMedianIsCounted) {
    int64_t ns = kBegin;
    const auto step = [&](int64_t tookNs) {
        mark(RecordType::nvtxPush, ns, kStepName);
        mark(RecordType::nvtxPush, ns + kMs, kStepName);  // a step inside a step
        mark(RecordType::nvtxPop, ns + 2 * kMs, 0);
        ns += tookNs;
        mark(RecordType::nvtxPop, ns, 0);
    };
    step(100 * kMs);  // the first ones of a job take long
    step(50 * kMs);
    for (int i = 0; i < 20; ++i) step((10 + i % 3) * kMs);
    EXPECT_EQ(m_slowSteps, 0u);
    step(16 * kMs);  // under 1.5 times 11 ms
    step(17 * kMs);
    EXPECT_EQ(m_slowSteps, 0u);  // not before the next one begins
    step(10 * kMs);
    EXPECT_EQ(m_slowSteps, 1u);
}
