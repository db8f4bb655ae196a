// SPDX-License-Identifier: Apache-2.0
// A profiler that stamps the host by a clock of its own, as PyTorch's does; in a process that is a rank itself.
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "reference/vgpu/device/clock_marks.h"

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);

namespace {

namespace fs = std::filesystem;
using rankscope::vgpu::ClockMarks;

TEST(ClockMarks, betweenTwoMarksTimePassesInProportion) {
    ClockMarks marks;
    marks.add(1000, 50);
    marks.add(3000, 90);
    EXPECT_EQ(marks.virtualAt(1000), 50);
    EXPECT_EQ(marks.virtualAt(2000), 70);
    EXPECT_EQ(marks.virtualAt(3000), 90);
}

TEST(ClockMarks, outsideOfTheMarksTimeStandsStill) {
    ClockMarks marks;
    EXPECT_EQ(marks.virtualAt(7), 0);
    marks.add(1000, 50);
    marks.add(3000, 90);
    EXPECT_EQ(marks.virtualAt(1), 50);
    EXPECT_EQ(marks.virtualAt(9000), 90);
}

TEST(ClockMarks, aThreadThatIsBehindDoesNotTurnTimeBack) {
    ClockMarks marks;
    marks.add(1000, 50);
    marks.add(2000, 30);
    marks.add(1500, 60);
    EXPECT_EQ(marks.virtualAt(2000), 60);
    EXPECT_EQ(marks.virtualAt(1999), 50);
    EXPECT_EQ(marks.lastNs(), 60);
}

// A clock that counts three ticks a nanosecond.
uint64_t ticks() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 3 * (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec));
}

int64_t unixNs() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

struct KernelCost {
    double flop, bytes;
};
const char kKernel = 0;

constexpr int64_t kKernelNs = 40'000'000;
constexpr const char* kMakeConverter = "_ZN3c1035ApproximateClockToUnixTimeConverter13makeConverterEv";
using Converter = std::function<int64_t(uint64_t)>;
using MakeConverter = Converter (*)(void*);

std::vector<CUpti_ActivityKernel10> g_kernels;
std::vector<CUpti_CallbackId> g_calls;

void giveBuffer(uint8_t** buffer, size_t* bytes, size_t* records) {
    *bytes = 1 << 20;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
    *records = 0;
}

void takeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            g_kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(record));
        else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME)
            g_calls.push_back(reinterpret_cast<CUpti_ActivityAPI*>(record)->cbid);
    std::free(buffer);
}

/// The definition that a library finds first, as PyTorch's libraries do.
Converter makeConverter() {
    const auto make = reinterpret_cast<MakeConverter>(dlsym(RTLD_DEFAULT, kMakeConverter));
    char object = 0;
    return make(&object);
}

class VgpuProfilerClock : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const fs::path scenario = fs::path(testing::TempDir()) / ("clock." + std::to_string(getpid()) + ".json");
        std::ofstream(scenario) << R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 1, "tflops": 1000,
                                      "hbm_gbps": 1000}})";
        setenv("RANKSCOPE_SCENARIO", scenario.c_str(), 1);
        setenv("RANKSCOPE_VGPU_JOB", ("clock." + std::to_string(getpid())).c_str(), 1);
        __cudaRegisterFunction(nullptr, &kKernel, nullptr, "_Z8declared10KernelCost", -1, nullptr, nullptr, nullptr,
                               nullptr, nullptr);
        EXPECT_EQ(cuptiActivityRegisterTimestampCallback(ticks), CUPTI_ERROR_NOT_SUPPORTED) << "there is no PyTorch";
        ASSERT_NE(dlopen(VGPU_FAKE_C10, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
        ASSERT_EQ(cuptiActivityRegisterCallbacks(giveBuffer, takeBuffer), CUPTI_SUCCESS);
        ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
        fs::remove(scenario);
    }

    void begin() {
        g_kernels.clear();
        g_calls.clear();
        ASSERT_EQ(cuptiActivityRegisterTimestampCallback(ticks), CUPTI_SUCCESS);
        ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    }
    void end() {
        ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
        ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    }
    void launch() {
        KernelCost cost{0, static_cast<double>(kKernelNs) * 1e3};
        void* arguments[] = {&cost};
        ASSERT_EQ(cudaLaunchKernel(&kKernel, dim3(1), dim3(32), arguments, 0, nullptr), cudaSuccess);
    }
};

TEST_F(VgpuProfilerClock, withoutARecordingTheConverterIsPyTorchsOwn) {
    EXPECT_EQ(makeConverter()(1), -10);
}

TEST_F(VgpuProfilerClock, stampsOfTheHostAndRecordsLieOnTheVirtualClock) {
    begin();
    const uint64_t beforeLaunch = ticks();
    launch();
    const uint64_t afterLaunch = ticks();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const uint64_t afterWait = ticks();
    end();
    ASSERT_EQ(g_kernels.size(), 1u);
    const Converter unixOf = makeConverter();
    const int64_t kernelBegins = unixOf(g_kernels[0].start), kernelEnds = unixOf(g_kernels[0].end);
    EXPECT_EQ(kernelEnds - kernelBegins, kKernelNs) << "a duration is kept to the nanosecond";
    EXPECT_LE(unixOf(beforeLaunch), unixOf(afterLaunch));
    EXPECT_LT(unixOf(afterLaunch), kernelEnds);
    EXPECT_LE(unixOf(beforeLaunch), kernelBegins);
    EXPECT_GE(unixOf(afterWait), kernelEnds) << "the host has waited for it";
    EXPECT_LT(unixOf(afterWait) - unixOf(beforeLaunch), kKernelNs + 1'000'000);
}

TEST_F(VgpuProfilerClock, aKindThatIsSwitchedOverridesWhatWasChosenCallByCall) {
    constexpr CUpti_CallbackId kLaunch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    const auto launches = [&](bool chosen, CUptiResult (*thenSwitch)(CUpti_ActivityKind)) {
        begin();
        EXPECT_EQ(cuptiActivityEnableRuntimeApi(kLaunch, chosen ? 1 : 0), CUPTI_SUCCESS);
        if (thenSwitch != nullptr) {
            EXPECT_EQ(thenSwitch(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
        }
        launch();
        end();
        const auto count = std::ranges::count(g_calls, kLaunch);
        EXPECT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
        return count;
    };
    EXPECT_EQ(launches(true, nullptr), 1);
    EXPECT_EQ(launches(false, nullptr), 0);
    EXPECT_EQ(launches(false, cuptiActivityEnable), 1);
    EXPECT_EQ(launches(true, cuptiActivityDisable), 0);
}

TEST_F(VgpuProfilerClock, nothingLiesOutsideOfTheRealTimesBetweenWhichItWasRecorded) {
    begin();
    const int64_t from = unixNs();
    for (int i = 0; i < 3; i++) {
        launch();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    const int64_t to = unixNs();
    end();
    const Converter unixOf = makeConverter();
    ASSERT_EQ(g_kernels.size(), 3u);
    for (const CUpti_ActivityKernel10& kernel : g_kernels) {
        EXPECT_GE(unixOf(kernel.start), from);
        EXPECT_LE(unixOf(kernel.end), to);
    }
}

}  // namespace
