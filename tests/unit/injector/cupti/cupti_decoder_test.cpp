// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "injector/capture_format/reader.h"
#include "injector/cupti/activity_decoder.h"
#include "tests/unit/injector/temporary_folder.h"

using namespace rankscope;
using namespace rankscope::injector;

namespace {

/// Feeds activities through a decoder into a file and gives back the records.
class Decoding : public testing::Test {
  protected:
    void SetUp() override {
        capture::FileHeader header{};
        ASSERT_TRUE(m_sink.open(path().c_str(), header, 0));
        m_decoder->setVersion(130001);
    }
    std::string path() const { return m_folder.path() + "/a.cap"; }

    template <typename... Activities>
    void decode(const Activities&... activities) {
        cupti::ActivityBlock block(m_sink, capture::Source::cupti);
        (m_decoder->decode(&activities, block, *m_strings), ...);
    }

    template <typename Record>
    std::vector<Record> records(capture::RecordType type) {
        capture::CaptureReader reader(path());
        std::vector<Record> found;
        while (const auto* record = reader.next())
            if (record->type() == type) found.push_back(record->as<Record>());
        return found;
    }

    TemporaryFolder m_folder;
    CaptureSink m_sink;
    std::unique_ptr<StringTable> m_strings = std::make_unique<StringTable>();
    std::unique_ptr<cupti::ActivityDecoder> m_decoder = std::make_unique<cupti::ActivityDecoder>();
};

CUpti_ActivityKernel10 kernel(uint64_t start, uint64_t end, const char* name) {
    CUpti_ActivityKernel10 activity{};
    activity.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    activity.start = start;
    activity.end = end;
    activity.deviceId = 2;
    activity.contextId = 1;
    activity.streamId = 7;
    activity.gridX = 4, activity.gridY = 2, activity.gridZ = 1;
    activity.blockX = 128, activity.blockY = 1, activity.blockZ = 1;
    activity.correlationId = 55;
    activity.name = name;
    return activity;
}

}  // namespace

TEST_F(Decoding, AKernelKeepsTimesShapeNameAndStream) {
    decode(kernel(1000, 3500, "gemm"), kernel(4000, 4100, "gemm"));
    const auto kernels = records<capture::KernelRecord>(capture::RecordType::kernel);
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[0].startNs, 1000);
    EXPECT_EQ(kernels[0].durNs, 2500u);
    EXPECT_EQ(kernels[0].gridBlocks, 8u);
    EXPECT_EQ(kernels[0].blockThreads, 128u);
    EXPECT_EQ(kernels[0].correlationId, 55u);
    EXPECT_EQ(kernels[0].flags, 0u);
    const auto streams = records<capture::StreamRecord>(capture::RecordType::stream);
    ASSERT_EQ(streams.size(), 1u);
    EXPECT_EQ(streams[0].device, 2);
    EXPECT_EQ(streams[0].stream, 7u);
    EXPECT_EQ(streams[0].head.aux, kernels[1].head.aux);
    const auto names = records<capture::StringRecord>(capture::RecordType::string);
    ASSERT_EQ(names.size(), 1u);
    EXPECT_EQ(static_cast<uint32_t>(names[0].id), kernels[1].nameIdLow);
}

TEST_F(Decoding, AKernelOfAGraphOrOfManySecondsIsFollowedByTheRest) {
    auto node = kernel(1000, 2000, "a");
    node.graphNodeId = 91;
    node.graphId = 4;
    const auto longOne = kernel(0, 10'000'000'000ull, "b");
    decode(node, longOne);
    const auto kernels = records<capture::KernelRecord>(capture::RecordType::kernel);
    const auto more = records<capture::KernelGraphRecord>(capture::RecordType::kernelGraph);
    ASSERT_EQ(more.size(), 2u);
    EXPECT_EQ(kernels[0].flags, 2u);
    EXPECT_EQ(more[0].graphNodeId, 91u);
    EXPECT_EQ(more[0].graphId, 4u);
    EXPECT_EQ((uint64_t{more[1].durHigh} << 32) + kernels[1].durNs, 10'000'000'000ull);
}

TEST_F(Decoding, AKernelWithoutAnEndIsMarkedIncomplete) {
    decode(kernel(1000, 0, "cut off"));
    const auto kernels = records<capture::KernelRecord>(capture::RecordType::kernel);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].flags, 1u);
    EXPECT_EQ(kernels[0].durNs, 0u);
}

TEST_F(Decoding, OverheadsKeepTheirKinds) {
    CUpti_ActivityOverhead3 compiler{};
    compiler.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    compiler.overheadKind = CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER;
    CUpti_ActivityOverhead3 flush = compiler;
    flush.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    decode(compiler, flush);
    const auto overheads = records<capture::OverheadRecord>(capture::RecordType::overhead);
    ASSERT_EQ(overheads.size(), 2u);
    EXPECT_EQ(overheads[0].head.aux, 1u);
    EXPECT_EQ(overheads[1].head.aux, capture::kOverheadOfCupti + 1u);
}

TEST_F(Decoding, CopiesSetsAndCalls) {
    CUpti_ActivityMemcpy6 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
    copy.bytes = 1 << 20;
    copy.start = 10, copy.end = 30;
    CUpti_ActivityMemset4 set{};
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.value = 3, set.bytes = 64, set.start = 40, set.end = 41;
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    api.cbid = 307, api.start = 5, api.end = 9, api.threadId = 4711, api.correlationId = 6, api.returnValue = 2;
    decode(copy, set, api);
    const auto copies = records<capture::MemcpyRecord>(capture::RecordType::memcpy);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].copyKind, 1u);
    EXPECT_EQ(copies[0].srcKind, 2u);
    EXPECT_EQ(copies[0].bytes, 1u << 20);
    EXPECT_EQ(copies[0].durNs, 20u);
    EXPECT_EQ(copies[0].flags, 1u);
    ASSERT_EQ(records<capture::MemsetRecord>(capture::RecordType::memset).size(), 1u);
    const auto calls = records<capture::CuptiApiRecord>(capture::RecordType::cuptiApi);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].head.aux, 307u);
    EXPECT_EQ(calls[0].tid, 4711);
    EXPECT_EQ(calls[0].domain, 1u);
    EXPECT_EQ(calls[0].returnValue, 2u);
}

TEST_F(Decoding, AContextWideWaitHasNoStreamAndAStreamWaitHasItsOwn) {
    CUpti_ActivitySynchronization2 device{};
    device.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    device.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    device.streamId = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    device.start = 1, device.end = 2;
    auto stream = device;
    stream.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    stream.contextId = 1;
    stream.streamId = 7;
    decode(kernel(1, 2, "k"), device, stream);
    const auto waits = records<capture::SynchronizationRecord>(capture::RecordType::synchronization);
    ASSERT_EQ(waits.size(), 2u);
    EXPECT_EQ(waits[0].head.aux, 0xffffu);
    EXPECT_EQ(waits[1].head.aux, records<capture::KernelRecord>(capture::RecordType::kernel)[0].head.aux);
}

TEST_F(Decoding, CallsAndWaitsMayTakeLongerThan32BitsOfNanoseconds) {
    constexpr uint64_t kTenSeconds = 10'000'000'000;
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    api.start = 5, api.end = 5 + kTenSeconds;
    auto endless = api;
    endless.end = ~uint64_t{0};
    CUpti_ActivitySynchronization2 wait{};
    wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    wait.streamId = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    wait.start = 5, wait.end = 5 + kTenSeconds;
    decode(api, endless, wait);
    const auto calls = records<capture::CuptiApiRecord>(capture::RecordType::cuptiApi);
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(capture::durationNs(calls[0]), 10'000'000'000);
    EXPECT_EQ(calls[0].domain, 2u);
    EXPECT_EQ(capture::durationNs(calls[1]), (int64_t{1} << 48) - 1);
    const auto waits = records<capture::SynchronizationRecord>(capture::RecordType::synchronization);
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(capture::durationNs(waits[0]), 10'000'000'000);
}

TEST_F(Decoding, AStreamIsKnownByTheFirstWaitOrEventOnIt) {
    CUpti_ActivitySynchronization2 wait{};
    wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    wait.contextId = 1;
    wait.streamId = 13;
    CUpti_ActivityCudaEvent2 event{};
    event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    event.contextId = 1;
    event.streamId = 13;
    decode(kernel(1, 2, "k"), wait, event);
    const auto streams = records<capture::StreamRecord>(capture::RecordType::stream);
    ASSERT_EQ(streams.size(), 2u);
    EXPECT_EQ(streams[1].stream, 13u);
    EXPECT_EQ(streams[1].device, 2);  // that of the context's other stream
    EXPECT_EQ(records<capture::SynchronizationRecord>(capture::RecordType::synchronization)[0].head.aux,
              streams[1].head.aux);
    EXPECT_EQ(records<capture::CudaEventRecord>(capture::RecordType::cudaEvent)[0].head.aux, streams[1].head.aux);
}

TEST_F(Decoding, OnlyOurOwnExternalCorrelationsAreKept) {
    CUpti_ActivityExternalCorrelation ours{};
    ours.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    ours.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    ours.externalId = 12, ours.correlationId = 34;
    auto theirs = ours;
    theirs.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
    decode(ours, theirs);
    const auto found = records<capture::ExternalCorrelationRecord>(capture::RecordType::externalCorrelation);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].externalId, 12u);
    EXPECT_EQ(found[0].correlationId, 34u);
}

TEST_F(Decoding, TimesOfEventsAreReadOnlyFromALayoutThatHasThem) {
    CUpti_ActivityCudaEvent2 event{};
    event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    event.eventId = 3;
    event.deviceTimestamp = 777;
    decode(event);
    m_decoder->setVersion(18);
    decode(event);
    const auto events = records<capture::CudaEventRecord>(capture::RecordType::cudaEvent);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].timeNs, 777);
    EXPECT_EQ(events[1].timeNs, 0);
}

TEST_F(Decoding, KindsItDoesNotKnowAreLeftOut) {
    CUpti_ActivityAPI unknown{};
    unknown.kind = static_cast<CUpti_ActivityKind>(9999);
    decode(unknown);
    capture::CaptureReader reader(path());
    EXPECT_EQ(reader.next(), nullptr);
}
