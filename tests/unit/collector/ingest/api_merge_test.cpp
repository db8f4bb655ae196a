// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/api_merge.h"

#include <gtest/gtest.h>

#include <utility>

namespace rankscope::collector {
namespace {

using capture::CudaApi;

/// A process whose threads allocate and free, each call 10 ns long.
struct Allocations {
    RawCapture raw;
    ThreadOfRing threads{{1, 0}, {2, 1}};

    void allocate(uint32_t ring, int64_t ns, uint64_t address, uint64_t bytes, int64_t recordedAfterNs = 3) {
        call(ring, ns, CudaApi::malloc, bytes);
        record(ring, ns + 10 + recordedAfterNs, CudaApi::malloc, bytes, address);
    }
    void free(uint32_t ring, int64_t ns, uint64_t address) {
        record(ring, ns - 3, CudaApi::free, 0, address);
        call(ring, ns, CudaApi::free, address);
    }

    RankRecording merged() const {
        RankRecording recording;
        std::unordered_map<int64_t, int32_t> ofTid;
        mergeApiCalls(raw, threads, ofTid, recording);
        return recording;
    }

  private:
    void call(uint32_t ring, int64_t ns, CudaApi api, uint64_t argument) {
        capture::ApiCallRecord record{};
        record.head.aux = static_cast<uint16_t>(api);
        record.startNs = ns;
        record.endNs = ns + 10;
        record.argument = argument;
        raw.apiCalls.push_back({ring, record});
    }
    void record(uint32_t ring, int64_t ns, CudaApi api, uint64_t bytes, uint64_t address) {
        capture::AllocationRecord record{};
        record.head.aux = static_cast<uint16_t>(api);
        record.timeNs = ns;
        record.bytes = bytes;
        record.address = address;
        raw.allocations.push_back({ring, record});
    }
};

std::vector<std::optional<int64_t>> bytesOf(const RankRecording& recording) {
    std::vector<std::optional<int64_t>> bytes;
    for (const store::Allocation& row : recording.allocations) bytes.push_back(row.bytes);
    return bytes;
}

using Bytes = std::vector<std::optional<int64_t>>;

TEST(Allocations, WhatIsFreedIsWhatItsAddressWasAllocatedWith) {
    Allocations job;
    job.allocate(1, 100, 0xA, 4096);
    job.allocate(1, 200, 0xB, 512);
    job.free(1, 300, 0xA);
    job.allocate(1, 400, 0xA, 64);  // the address is given out again
    job.free(1, 500, 0xA);
    job.free(1, 600, 0xB);
    EXPECT_EQ(bytesOf(job.merged()), (Bytes{4096, 512, 4096, 64, 64, 512}));
}

TEST(Allocations, AnotherThreadMayFreeThem) {
    Allocations job;
    job.allocate(1, 100, 0xA, 4096);
    job.free(2, 300, 0xA);
    EXPECT_EQ(bytesOf(job.merged()), (Bytes{4096, 4096}));
}

TEST(Allocations, OfWhatWasAllocatedBeforeTheRecordingNothingIsKnown) {
    Allocations job;
    job.free(1, 100, 0xA);
    job.allocate(1, 200, 0xA, 64);
    job.free(1, 300, 0xA);
    job.free(1, 400, 0xA);
    EXPECT_EQ(bytesOf(job.merged()), (Bytes{std::nullopt, 64, 64, std::nullopt}));
}

TEST(Allocations, ARefusedOneIsToldWithTheBytesAskedForAndHoldsNone) {
    for (const int64_t recordedAfterNs : {0, 3}) {  // virtual time stands still between the call's end and its record
        Allocations job;
        job.allocate(1, 100, 0xA, 4096, recordedAfterNs);
        job.allocate(1, 200, 0, 1 << 20, recordedAfterNs);
        job.allocate(1, 300, 0xB, 512, recordedAfterNs);
        const RankRecording recording = job.merged();
        EXPECT_EQ(bytesOf(recording), (Bytes{4096, 0, 512}));
        ASSERT_EQ(recording.failedAllocations.size(), 1u);
        EXPECT_EQ(recording.failedAllocations[0].bytes, 1 << 20);
    }
}

/// Launches of one thread, as the hooks and as CUPTI saw them.
struct Launches {
    RawCapture raw;
    ThreadOfRing threads{{1, 0}};

    void hooked(int64_t startNs, int64_t endNs, uint64_t argument) {
        capture::ApiCallRecord record{};
        record.head.aux = static_cast<uint16_t>(CudaApi::launchKernel);
        record.startNs = startNs;
        record.endNs = endNs;
        record.argument = argument;
        raw.apiCalls.push_back({1, record});
    }
    void seenByCupti(int64_t startNs, int64_t endNs, uint32_t correlationId) {
        capture::CuptiApiRecord record{};
        record.head.aux = 211;  // cudaLaunchKernel
        record.startNs = startNs;
        record.durNsLow = static_cast<uint32_t>(endNs - startNs);
        record.domain = 2;
        record.tid = 77;
        record.correlationId = correlationId;
        raw.cuptiApis.push_back(record);
    }

    /// (correlation id, argument) of each row.
    std::vector<std::pair<int64_t, int64_t>> merged() const {
        RankRecording recording;
        std::unordered_map<int64_t, int32_t> ofTid{{77, 0}};
        mergeApiCalls(raw, threads, ofTid, recording);
        std::vector<std::pair<int64_t, int64_t>> rows;
        for (const store::ApiCall& call : recording.apiCalls)
            rows.emplace_back(call.correlationId.value_or(0), call.argument.value_or(-1));
        return rows;
    }
};

TEST(Launches, ACallOfBothIsOneRowThoughTheirStampsDifferALittle) {
    Launches job;  // as an H100 had it: CUPTI's stamps lie 0.4 us in front of the hook's
    job.hooked(1000, 7000, 1);
    job.seenByCupti(600, 6500, 101);
    job.hooked(7200, 12000, 2);
    job.seenByCupti(6800, 11500, 102);
    EXPECT_EQ(job.merged(), (std::vector<std::pair<int64_t, int64_t>>{{101, 1}, {102, 2}}));
}

TEST(Launches, ACallThatOnlyTouchesIsAnother) {
    Launches job;
    job.hooked(0, 10, 1);  // before CUPTI was asked
    job.hooked(10, 20, 2);
    job.seenByCupti(10, 20, 102);
    EXPECT_EQ(job.merged(), (std::vector<std::pair<int64_t, int64_t>>{{102, 2}, {0, 1}}));
}

}  // namespace
}  // namespace rankscope::collector
