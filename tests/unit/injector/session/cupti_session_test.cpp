// SPDX-License-Identifier: Apache-2.0
// The CUPTI session against a CUPTI of our own behind the seam.
#include "injector/session/cupti_session.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
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
    bool subscribed = false;
    cupti::Callback callback = nullptr;
    void* callbackData = nullptr;
    std::set<std::pair<int, uint32_t>> calledBack;  // domain and callback id
    std::set<uint32_t> runtimeCalls;                // that are recorded one by one
    bool knowsStreams = true;
    bool refusesCalls = false;
    int registerResult = 0;
};
FakeCupti g_fake;

const auto kStream = reinterpret_cast<cudaStream_t>(0x5500);
const auto kStreamElsewhere = reinterpret_cast<cudaStream_t>(0x6600);  // not of the calling thread's context
const auto kEvent = reinterpret_cast<cudaEvent_t>(0x7f0000001230);

/// A call of the job of whose beginning or end CUPTI tells whoever asked.
struct FakeCall {
    int domain;
    uint32_t id;
    const void* parameters;
    int result = 0;
    uint32_t correlation = 7;
    uint64_t begun = 0;

    void tell(CUpti_ApiCallbackSite site) {
        if (!g_fake.calledBack.contains({domain, id})) return;
        CUpti_CallbackData data{};
        data.callbackSite = site;
        data.functionParams = parameters;
        data.functionReturnValue = &result;
        data.context = reinterpret_cast<CUcontext>(this);
        data.contextUid = 1;
        data.correlationData = &begun;
        data.correlationId = correlation;
        g_fake.callback(g_fake.callbackData, domain, id, &data);
    }
    void happen() {
        tell(CUPTI_API_ENTER);
        tell(CUPTI_API_EXIT);
    }
};

bool loadFake(cupti::Api& api) noexcept {
    api = {};
    api.getVersion = [](uint32_t* version) { return *version = 130001, 0; };
    api.getResultString = [](int, const char** text) { return *text = "A_REASON", 0; };
    api.activityEnable = [](int kind) { return g_fake.enabled.push_back(kind), g_fake.enableResult; };
    api.activityDisable = [](int kind) { return g_fake.disabled.push_back(kind), 0; };
    api.activityRegisterCallbacks = [](cupti::RequestBuffer request, cupti::CompleteBuffer complete) {
        g_fake.request = request;
        g_fake.complete = complete;
        return g_fake.registerResult;
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
    api.subscribeV2 = [](void** subscriber, cupti::Callback callback, void* data, cupti::SubscriberParams* params) {
        g_fake.holder.copy(params->oldSubscriberName, params->oldSubscriberSize - 1);
        *subscriber = &g_fake;
        g_fake.subscribed = g_fake.subscribeResult == 0;
        g_fake.callback = callback;
        g_fake.callbackData = data;
        return g_fake.subscribeResult;
    };
    api.unsubscribe = [](void*) { return g_fake.subscribed = false, g_fake.calledBack.clear(), 0; };
    return true;
}

/// One that can choose calls and call back.
bool loadNewFake(cupti::Api& api) noexcept {
    loadFake(api);
    api.getCallbackName = [](int domain, uint32_t id, const char** name) {
        if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return static_cast<int>(CUPTI_ERROR_INVALID_PARAMETER);
        if (id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) return *name = "cudaLaunchKernel_v7000", 0;
        if (id == CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020) return *name = "cudaGetDevice_v3020", 0;
        return static_cast<int>(CUPTI_ERROR_INVALID_PARAMETER);
    };
    api.activityEnableRuntimeApi = [](uint32_t id, uint8_t enable) {
        if (enable != 0 && g_fake.refusesCalls) return static_cast<int>(CUPTI_ERROR_NOT_SUPPORTED);
        if (enable != 0)
            g_fake.runtimeCalls.insert(id);
        else
            g_fake.runtimeCalls.erase(id);
        return 0;
    };
    api.activityEnableDriverApi = [](uint32_t, uint8_t) { return 0; };
    api.enableCallback = [](uint32_t enable, void*, int domain, uint32_t id) {
        if (enable != 0)
            g_fake.calledBack.insert({domain, id});
        else
            g_fake.calledBack.erase({domain, id});
        return 0;
    };
    api.getStreamIdEx = [](void* context, void* stream, uint8_t, uint32_t* number) {
        *number = stream == nullptr ? 7 : 13;
        const bool isElsewhere = stream == kStreamElsewhere && context != nullptr;
        return g_fake.knowsStreams && !isElsewhere ? 0 : static_cast<int>(CUPTI_ERROR_INVALID_STREAM);
    };
    api.getDeviceId = [](void*, uint32_t* device) { return *device = 0, 0; };
    return true;
}

bool isEnabled(int kind) {
    return std::find(g_fake.enabled.begin(), g_fake.enabled.end(), kind) != g_fake.enabled.end();
}

/// The waits and events of a file, and the stream that each names.
struct RecordedWaits {
    std::vector<capture::SynchronizationRecord> waits;
    std::vector<capture::CudaEventRecord> events;
    std::map<uint16_t, uint32_t> streams;
    uint64_t unknownStreams = 0;

    explicit RecordedWaits(const std::string& path) {
        capture::CaptureReader reader(path);
        while (const auto* record = reader.next()) {
            if (record->type() == capture::RecordType::synchronization)
                waits.push_back(record->as<capture::SynchronizationRecord>());
            if (record->type() == capture::RecordType::cudaEvent)
                events.push_back(record->as<capture::CudaEventRecord>());
            if (record->type() == capture::RecordType::loss &&
                record->head().aux == static_cast<uint16_t>(capture::LossKind::unknownStreams))
                unknownStreams += record->as<capture::LossRecord>().count;
            if (record->type() != capture::RecordType::stream) continue;
            const auto stream = record->as<capture::StreamRecord>();
            streams[stream.head.aux] = stream.stream;
        }
    }
};

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

OWN_PROCESS_TEST(CuptiSession, CallsAreChosenAndTheRestIsNotLookedAt) {
    cupti::start(true, loadNewFake);
    EXPECT_EQ(g_fake.runtimeCalls, (std::set<uint32_t>{CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000}));
    for (const int kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                           CUPTI_ACTIVITY_KIND_CUDA_EVENT})
        EXPECT_FALSE(isEnabled(kind)) << kind;
    cupti::disable();
    EXPECT_TRUE(g_fake.runtimeCalls.empty());
    EXPECT_TRUE(g_fake.calledBack.empty());
    EXPECT_EQ(g_fake.disabled.size(), g_fake.enabled.size());
    finishAndFind();
}

OWN_PROCESS_TEST(CuptiSession, ACuptiThatCannotChooseRecordsAllCallsAndWaits) {
    cupti::start(true, loadFake);
    EXPECT_FALSE(g_fake.subscribed) << "a place without use is left to others";
    for (const int kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                           CUPTI_ACTIVITY_KIND_CUDA_EVENT})
        EXPECT_TRUE(isEnabled(kind)) << kind;
    finishAndFind();
}

OWN_PROCESS_TEST(CuptiSession, WaitsAndEventsAreRecordedAsTheCallsCallBack) {
    cupti::start(true, loadNewFake);
    const cudaEventRecord_v3020_params recorded{kEvent, kStream};
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, &recorded, 0, 11}.happen();
    // The runtime makes a call of the driver, which CUPTI tells as well.
    const cudaStreamWaitEvent_v3020_params waited{nullptr, kEvent, 0};
    const cuStreamWaitEvent_params within{nullptr, reinterpret_cast<CUevent>(kEvent), 0};
    FakeCall outer{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, &waited, 0, 12};
    FakeCall inner{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &within, 0, 12};
    outer.tell(CUPTI_API_ENTER);
    inner.happen();
    outer.tell(CUPTI_API_EXIT);
    const cuEventSynchronize_params synchronized{reinterpret_cast<CUevent>(kEvent)};
    FakeCall{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, &synchronized, 0, 13}.happen();
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, nullptr, 0, 14}
        .happen();

    const RecordedWaits seen(finishAndFind());
    ASSERT_EQ(seen.events.size(), 1u);
    ASSERT_EQ(seen.waits.size(), 3u);
    EXPECT_EQ(seen.events[0].correlationId, 11u);
    EXPECT_EQ(seen.streams.at(seen.events[0].head.aux), 13u);
    EXPECT_GT(seen.events[0].timeNs, 0);
    EXPECT_EQ(seen.waits[0].correlationId, 12u);
    EXPECT_EQ(seen.waits[0].kind, uint32_t{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT});
    EXPECT_EQ(seen.streams.at(seen.waits[0].head.aux), 7u);
    EXPECT_EQ(seen.waits[1].kind, uint32_t{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE});
    EXPECT_EQ(seen.waits[1].head.aux, 0xffff);
    EXPECT_EQ(seen.waits[2].kind, uint32_t{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE});
    EXPECT_NE(seen.events[0].eventId, 0u);
    EXPECT_EQ(seen.waits[0].eventId, seen.events[0].eventId);
    EXPECT_EQ(seen.waits[1].eventId, seen.events[0].eventId);
}

OWN_PROCESS_TEST(CuptiSession, WhatDidNotHappenOrHasNoKnownStreamIsNoWait) {
    cupti::start(true, loadNewFake);
    const cudaStreamWaitEvent_v3020_params waited{kStream, kEvent, 0};
    constexpr auto kWait = CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020;
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited, 400}.happen();  // refused
    g_fake.knowsStreams = false;
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited}.happen();
    g_fake.knowsStreams = true;
    // A call that was under way as recording began, and one that is under way as it ends and begins again.
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited}.tell(CUPTI_API_EXIT);
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited}.tell(CUPTI_API_ENTER);
    cupti::disable();
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited}.happen();
    cupti::enable();
    FakeCall{CUPTI_CB_DOMAIN_RUNTIME_API, kWait, &waited, 0, 99}.happen();
    const RecordedWaits seen(finishAndFind());
    ASSERT_EQ(seen.waits.size(), 1u);
    EXPECT_EQ(seen.waits[0].correlationId, 99u);
    EXPECT_EQ(seen.unknownStreams, 1u);
}

OWN_PROCESS_TEST(CuptiSession, WhoeverWantsToBeCalledBackGetsThePlaceAndWaitsComeAsRecords) {
    cupti::start(true, loadNewFake);
    ASSERT_TRUE(g_fake.subscribed);
    cupti::leavePlace();
    EXPECT_FALSE(g_fake.subscribed);
    EXPECT_TRUE(isEnabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
    EXPECT_TRUE(isEnabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT));
    EXPECT_TRUE(cupti::g_live.load()) << "kernels and calls go on";
    cupti::disable();
    EXPECT_EQ(g_fake.disabled.size(), g_fake.enabled.size());
    finishAndFind();
}

OWN_PROCESS_TEST(CuptiSession, AStreamOfAnotherDeviceIsTheOneThatItsKernelsAreOn) {
    cupti::start(true, loadNewFake);
    const cudaEventRecord_v3020_params recorded{kEvent, kStreamElsewhere};
    FakeCall call{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, &recorded};
    call.happen();  // nothing has run on it yet
    uint8_t* buffer = nullptr;
    size_t size = 0, maxRecords = 0;
    g_fake.request(&buffer, &size, &maxRecords);
    for (size_t place = 0; const auto& [device, context] : {std::pair{0u, 1u}, std::pair{1u, 2u}}) {
        CUpti_ActivityKernel10 kernel{};
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.deviceId = device;
        kernel.contextId = context;
        kernel.streamId = 13;
        kernel.start = kernel.end = 1000;
        std::memcpy(buffer + place++ * sizeof kernel, &kernel, sizeof kernel);
    }
    g_fake.complete(nullptr, 0, buffer, size, 2 * sizeof(CUpti_ActivityKernel10));
    call.happen();
    const std::string path = finishAndFind();
    const RecordedWaits seen(path);
    ASSERT_EQ(seen.events.size(), 1u);
    EXPECT_EQ(seen.unknownStreams, 1u);
    capture::CaptureReader reader(path);
    while (const auto* record = reader.next()) {
        if (record->type() != capture::RecordType::stream) continue;
        const auto stream = record->as<capture::StreamRecord>();
        EXPECT_EQ(stream.head.aux == seen.events[0].head.aux, stream.device == 1);
    }
}

OWN_PROCESS_TEST(CuptiSession, WhatCuptiRefusesOneByOneIsAskedForAsAKind) {
    g_fake.refusesCalls = true;
    cupti::start(true, loadNewFake);
    EXPECT_TRUE(isEnabled(CUPTI_ACTIVITY_KIND_RUNTIME));
    EXPECT_TRUE(isEnabled(CUPTI_ACTIVITY_KIND_DRIVER));
    EXPECT_FALSE(isEnabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) << "callbacks are granted";
    cupti::disable();
    EXPECT_EQ(g_fake.disabled.size(), g_fake.enabled.size());
    finishAndFind();
}

OWN_PROCESS_TEST(CuptiSession, ThePlaceIsHeldWhileSomethingIsRecordedOnly) {
    cupti::start(false, loadNewFake);
    EXPECT_FALSE(g_fake.subscribed);
    cupti::leavePlace();  // somebody comes, and stays
    g_fake.subscribeResult = cupti::kMultipleSubscribers;
    cupti::enable();
    EXPECT_TRUE(cupti::g_live.load());
    EXPECT_TRUE(isEnabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
    cupti::disable();
    g_fake.subscribeResult = 0;  // and goes
    cupti::enable();
    EXPECT_TRUE(g_fake.subscribed);
    cupti::disable();
    EXPECT_FALSE(g_fake.subscribed);
    finishAndFind();
}

OWN_PROCESS_TEST(CuptiSession, WhoeverIsRefusedKeepsNoPlace) {
    g_fake.registerResult = 35;
    cupti::start(true, loadNewFake);
    EXPECT_FALSE(g_fake.subscribed);
    EXPECT_TRUE(g_fake.enabled.empty());
    finishAndFind();
}
