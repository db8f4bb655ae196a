// SPDX-License-Identifier: Apache-2.0
// The CUPTI session against a CUPTI of our own behind the seam.
#include "injector/session/cupti_session.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "injector/capture_format/reader.h"
#include "injector/session/light_session.h"
#include "injector/session/session.h"
#include "tests/unit/injector/own_process.h"
#include "tests/unit/injector/temporary_folder.h"

using namespace rankscope;
using namespace rankscope::injector;

namespace {

/// A CUPTI that gives what a test tells it to give.
struct FakeCupti {
    int subscribeResult = 0;
    int enableResult = 0;
    size_t dropped = 0;
    std::string holder;
    std::vector<int> enabled;
    std::vector<int> disabled;
    cupti::RequestBuffer request = nullptr;
    cupti::CompleteBuffer complete = nullptr;
    int forcedFlushes = 0;
    bool takesZeroedBuffers = false;
};
FakeCupti g_fake;

bool loadFake(cupti::Api& api) noexcept {
    api = {};
    api.getVersion = [](uint32_t* version) { return *version = 130001, 0; };
    api.getResultString = [](int, const char** text) { return *text = "A_REASON", 0; };
    api.activityEnable = [](int kind) { return g_fake.enabled.push_back(kind), g_fake.enableResult; };
    api.activityDisable = [](int kind) { return g_fake.disabled.push_back(kind), 0; };
    api.activityRegisterCallbacks = [](cupti::RequestBuffer request, cupti::CompleteBuffer complete) {
        g_fake.request = request;
        g_fake.complete = complete;
        return 0;
    };
    api.activityGetNextRecord = [](uint8_t* buffer, size_t size, void** record) {
        uint8_t* next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + sizeof(CUpti_ActivityKernel10);
        if (next + sizeof(CUpti_ActivityKernel10) > buffer + size)
            return static_cast<int>(CUPTI_ERROR_MAX_LIMIT_REACHED);
        *record = next;
        return 0;
    };
    api.activityFlushAll = [](uint32_t flags) {
        return g_fake.forcedFlushes += flags == cupti::kFlushForced ? 1 : 0, 0;
    };
    api.activityGetNumDroppedRecords = [](void*, uint32_t, size_t* dropped) { return *dropped = g_fake.dropped, 0; };
    api.activityPushExternalCorrelationId = [](int, uint64_t) { return 0; };
    api.activityPopExternalCorrelationId = [](int, uint64_t*) { return 0; };
    api.activitySetAttribute = [](int attribute, size_t*, void* value) {
        if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
            g_fake.takesZeroedBuffers = *static_cast<const uint8_t*>(value) != 0;
        return 0;
    };
    api.subscribeV2 = [](void**, cupti::Callback, void*, cupti::SubscriberParams* params) {
        g_fake.holder.copy(params->oldSubscriberName, params->oldSubscriberSize - 1);
        return g_fake.subscribeResult;
    };
    api.unsubscribe = [](void*) { return 0; };
    return true;
}

class CuptiSession {
  public:
    void setUp() {
        setenv("RANKSCOPE_DIR", m_folder.path().c_str(), 1);
        setenv("RANKSCOPE_TRACE", "nvtx", 1);  // so that the session itself starts no CUPTI
        unsetenv("RANKSCOPE_CLOCK");
        ASSERT_TRUE(g_session.isRecording(Cause::nvtx));
    }

  protected:
    std::string finishAndFind() {
        g_session.finish(EndCause::exit, 0);
        for (const auto& entry : std::filesystem::directory_iterator(m_folder.path()))
            if (entry.path().extension() == ".cap") return entry.path();
        return {};
    }
    struct Status {
        uint16_t status;
        int64_t code;
        std::string message;
    };
    static std::vector<Status> cuptiStatuses(const std::string& path) {
        capture::CaptureReader reader(path);
        std::map<uint64_t, std::string> texts;
        std::vector<Status> statuses;
        while (const auto* record = reader.next()) {
            if (record->type() == capture::RecordType::string)
                texts[record->as<capture::StringRecord>().id] = record->text();
            if (record->type() != capture::RecordType::status) continue;
            const auto status = record->as<capture::StatusRecord>();
            if (status.source == capture::Source::cupti)
                statuses.push_back({status.head.aux, status.code, texts[status.message]});
        }
        return statuses;
    }
    TemporaryFolder m_folder;
};

}  // namespace

OWN_PROCESS_TEST(CuptiSession, RecordsOfACompletedBufferAreInTheFile) {
    cupti::start(true, loadFake);
    ASSERT_NE(g_fake.complete, nullptr);
    uint8_t* buffer = nullptr;
    size_t size = 0;
    size_t maxRecords = 1;
    g_fake.request(&buffer, &size, &maxRecords);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 8, 0u);
    EXPECT_EQ(maxRecords, 0u);
    for (int i = 0; i < 1000; ++i) {
        CUpti_ActivityKernel10 kernel{};
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.start = 1000 + static_cast<uint64_t>(i);
        kernel.end = kernel.start + 10;
        kernel.name = "k";
        std::memcpy(buffer + static_cast<size_t>(i) * sizeof kernel, &kernel, sizeof kernel);
    }
    g_fake.dropped = 17;
    g_fake.complete(nullptr, 0, buffer, size, 1000 * sizeof(CUpti_ActivityKernel10));
    const std::string path = finishAndFind();
    EXPECT_EQ(g_fake.forcedFlushes, 1);
    capture::CaptureReader reader(path);
    int kernels = 0;
    uint64_t dropped = 0;
    while (const auto* record = reader.next()) {
        kernels += record->type() == capture::RecordType::kernel ? 1 : 0;
        if (record->type() == capture::RecordType::loss &&
            record->head().aux == static_cast<uint16_t>(capture::LossKind::cuptiDropped))
            dropped += record->as<capture::LossRecord>().count;
    }
    EXPECT_EQ(kernels, 1000);
    EXPECT_EQ(dropped, 17u);
    EXPECT_EQ(reader.highWaterNs(capture::Source::cupti), 2009);
    ASSERT_EQ(cuptiStatuses(path).size(), 1u);
    EXPECT_EQ(cuptiStatuses(path)[0].status, 1u);
}

OWN_PROCESS_TEST(CuptiSession, KernelsWithoutTimesAreInNoSummaryAndCounted) {
    light::kernelSummaries().begin({[](void*, const void* records, size_t bytes, uint32_t count, int64_t) noexcept {
                                        g_session.sink().append(capture::Source::cupti, records, bytes, count, 1);
                                    },
                                    nullptr});
    cupti::start(true, loadFake);
    ASSERT_NE(g_fake.complete, nullptr);
    uint8_t* buffer = nullptr;
    size_t size = 0;
    size_t maxRecords = 1;
    g_fake.request(&buffer, &size, &maxRecords);
    ASSERT_NE(buffer, nullptr);
    constexpr uint64_t kTimes[][2] = {{1000, 1010}, {0, 0}, {0, 5}, {1020, 0}, {1030, 1029}, {1040, 1040}};
    size_t used = 0;
    for (const auto& [startNs, endNs] : kTimes) {
        CUpti_ActivityKernel10 kernel{};
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.start = startNs;
        kernel.end = endNs;
        kernel.name = "k";
        std::memcpy(buffer + used, &kernel, sizeof kernel);
        used += sizeof kernel;
    }
    g_fake.complete(nullptr, 0, buffer, size, used);
    capture::CaptureReader reader(finishAndFind());
    uint64_t untimed = 0, kernels = 0;
    while (const auto* record = reader.next()) {
        if (record->type() == capture::RecordType::loss &&
            record->head().aux == static_cast<uint16_t>(capture::LossKind::untimedKernels))
            untimed += record->as<capture::LossRecord>().count;
        if (record->type() != capture::RecordType::kernelSummary) continue;
        const auto summary = record->as<capture::KernelSummaryRecord>();
        kernels += summary.otherCount + summary.items;  // all of one kind
    }
    EXPECT_EQ(untimed, 4u);
    EXPECT_EQ(kernels, 1u);
}

OWN_PROCESS_TEST(CuptiSession, WhenAnotherToolHoldsCuptiItsNameIsTold) {
    g_fake.subscribeResult = cupti::kMultipleSubscribers;
    g_fake.holder = "Nsight Systems";
    cupti::start(true, loadFake);
    EXPECT_TRUE(g_fake.enabled.empty());
    EXPECT_FALSE(cupti::g_live.load());
    const auto statuses = cuptiStatuses(finishAndFind());
    ASSERT_FALSE(statuses.empty());
    EXPECT_EQ(statuses.back().status, 3u);
    EXPECT_EQ(statuses.back().code, 39);
    EXPECT_NE(statuses.back().message.find("Nsight Systems"), std::string::npos);
}

OWN_PROCESS_TEST(CuptiSession, ARefusalIsToldWithItsCodeAndEverythingElseGoesOn) {
    g_fake.enableResult = 35;
    cupti::start(true, loadFake);
    EXPECT_FALSE(cupti::g_live.load());
    EXPECT_EQ(g_session.mode(), Mode::recording);
    const auto statuses = cuptiStatuses(finishAndFind());
    ASSERT_FALSE(statuses.empty());
    EXPECT_EQ(statuses.back().status, 2u);
    EXPECT_EQ(statuses.back().code, 35);
    EXPECT_NE(statuses.back().message.find("A_REASON"), std::string::npos);
}

OWN_PROCESS_TEST(CuptiSession, YieldsToAClientOfTheJobAndStaysAway) {
    cupti::start(true, loadFake);
    ASSERT_TRUE(cupti::g_live.load());
    EXPECT_TRUE(g_fake.takesZeroedBuffers);
    cupti::yieldTo("libkineto.so");
    EXPECT_FALSE(cupti::g_live.load());
    EXPECT_FALSE(g_fake.takesZeroedBuffers) << "whose buffers may hold anything";
    EXPECT_EQ(g_fake.disabled.size(), g_fake.enabled.size());
    const size_t enabled = g_fake.enabled.size();
    cupti::enable();
    EXPECT_EQ(g_fake.enabled.size(), enabled);
    EXPECT_NE(cuptiStatuses(finishAndFind()).back().message.find("libkineto.so"), std::string::npos);
}

OWN_PROCESS_TEST(CuptiSession, ConcurrentKernelsAreAskedForAndNeverTheKindThatSerialises) {
    cupti::start(true, loadFake);
    EXPECT_NE(std::find(g_fake.enabled.begin(), g_fake.enabled.end(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
              g_fake.enabled.end());
    EXPECT_EQ(std::find(g_fake.enabled.begin(), g_fake.enabled.end(), CUPTI_ACTIVITY_KIND_KERNEL),
              g_fake.enabled.end());
    finishAndFind();
}
