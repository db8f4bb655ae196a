// SPDX-License-Identifier: Apache-2.0
// What a framework's operators are told to the virtual GPUs, and what becomes of it; in a process that is a rank
// itself.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reference/vgpu/engine/operator_api.h"

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);

namespace {

namespace fs = std::filesystem;

// Kernels are found by the address of their host stub.
const char kPlain = 0, kDeclared = 0;

struct KernelCost {
    double flop, bytes;
};

constexpr double kUs = 1e3, kMs = 1e6;

/// 1000 TFLOP/s and 1000 GB/s: a microsecond is 1e9 flop or 1e6 bytes.
RankscopeWork bytesFor(double us) {
    return {0, us * 1e6, RANKSCOPE_ELEMENT_BF16};
}

class VgpuOperators : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const fs::path scenario = fs::path(testing::TempDir()) / ("operators." + std::to_string(getpid()) + ".json");
        std::ofstream(scenario) << R"({"noise": 0, "cluster": {"nodes": 1, "ranks_per_node": 1, "tflops": 1000,
                                      "hbm_gbps": 1000, "launch_us": 6, "operator_us": 4}})";
        setenv("RANKSCOPE_SCENARIO", scenario.c_str(), 1);
        setenv("RANKSCOPE_VGPU_JOB", ("operators." + std::to_string(getpid())).c_str(), 1);
        setenv("RANKSCOPE_TORCH_LIBRARY", VGPU_FAKE_TORCH, 1);
        void* torch = dlopen(VGPU_FAKE_TORCH, RTLD_NOW);
        ASSERT_NE(torch, nullptr) << dlerror();
        __cudaRegisterFunction(nullptr, &kPlain, nullptr, "_Z5plainv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        __cudaRegisterFunction(nullptr, &kDeclared, nullptr, "_Z8declared10KernelCost", -1, nullptr, nullptr, nullptr,
                               nullptr, nullptr);
        ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
        g_hooks = *static_cast<const RankscopeOperatorHooks**>(dlsym(torch, "givenHooks"));
        ASSERT_NE(g_hooks, nullptr);
        fs::remove(scenario);
    }

    void SetUp() override { ASSERT_EQ(cudaStreamCreate(&m_stream), cudaSuccess); }

    void launch(unsigned blocks = 1) {
        ASSERT_EQ(cudaLaunchKernel(&kPlain, dim3(blocks), dim3(32), nullptr, 0, m_stream), cudaSuccess);
    }
    void launchDeclared(double us) {
        KernelCost cost{0, us * 1e6};
        void* arguments[] = {&cost};
        ASSERT_EQ(cudaLaunchKernel(&kDeclared, dim3(1), dim3(32), arguments, 0, m_stream), cudaSuccess);
    }
    void begin(const RankscopeWork& expected = {}) { g_hooks->beginOperator("aten::test", &expected); }
    void end(const RankscopeWork& work) { g_hooks->endOperator(&work); }

    cudaEvent_t mark() {
        cudaEvent_t event = nullptr;
        EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(event, m_stream), cudaSuccess);
        return event;
    }
    double nsBetween(cudaEvent_t first, cudaEvent_t second) {
        EXPECT_EQ(cudaStreamSynchronize(m_stream), cudaSuccess);
        float ms = 0;
        EXPECT_EQ(cudaEventElapsedTime(&ms, first, second), cudaSuccess);
        return static_cast<double>(ms) * kMs;
    }

    static const RankscopeOperatorHooks* g_hooks;
    cudaStream_t m_stream = nullptr;
};
const RankscopeOperatorHooks* VgpuOperators::g_hooks = nullptr;

TEST_F(VgpuOperators, kernelsThatAreNotTheFrameworksAreToldOfOnceForEachLibrary) {
    static const char first = 0, second = 0;
    void* torch = dlopen(VGPU_FAKE_TORCH, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(torch, nullptr);
    const char* own = static_cast<const char*>(dlsym(torch, "givenHooks"));
    for (const auto& [stub, name] :
         {std::pair(own, "_Z3ownv"), std::pair(&first, "_Z5firstv"), std::pair(&second, "_Z6secondv")})
        __cudaRegisterFunction(nullptr, stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    const auto told = [&](const char* stub) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(cudaLaunchKernel(stub, dim3(1), dim3(32), nullptr, 0, m_stream), cudaSuccess);
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(told(own), "");
    const std::string said = told(&first);
    EXPECT_NE(said.find("operator_tests (the first: _Z5firstv) are not executed"), std::string::npos) << said;
    EXPECT_EQ(told(&first), "");
    EXPECT_EQ(told(&second), "");
}

TEST_F(VgpuOperators, aKernelTakesWhatItsOperatorMoves) {
    const cudaEvent_t first = mark();
    begin();
    launch(4096);
    end(bytesFor(1000));
    EXPECT_NEAR(nsBetween(first, mark()), 1000 * kUs, 20 * kUs);
}

TEST_F(VgpuOperators, arithmeticIsSlowerInWiderElements) {
    const RankscopeWork half{2e11, 0, RANKSCOPE_ELEMENT_BF16}, whole{2e11, 0, RANKSCOPE_ELEMENT_FP32};
    const cudaEvent_t first = mark();
    begin();
    launch();
    end(half);
    const cudaEvent_t second = mark();
    begin();
    launch();
    end(whole);
    const cudaEvent_t third = mark();
    const double halfNs = nsBetween(first, second), wholeNs = nsBetween(second, third);
    EXPECT_NEAR(halfNs, 200 * kUs, 20 * kUs);
    EXPECT_NEAR(wholeNs / halfNs, 15, 1);
}

TEST_F(VgpuOperators, launchesOfOneOperatorShareItsWorkByTheirBlocks) {
    begin();
    launch(100);
    const cudaEvent_t first = mark();
    launch(300);
    const cudaEvent_t second = mark();
    end(bytesFor(1000));
    EXPECT_NEAR(nsBetween(first, second), 750 * kUs, 10 * kUs);
}

TEST_F(VgpuOperators, theInnermostOperatorPays) {
    const cudaEvent_t first = mark();
    begin();
    begin();
    launch();
    end(bytesFor(300));
    end(bytesFor(5000));
    EXPECT_NEAR(nsBetween(first, mark()), 300 * kUs, 20 * kUs);
}

TEST_F(VgpuOperators, whatAKernelDeclaresIsNotPaidTwice) {
    const cudaEvent_t first = mark();
    begin();
    launchDeclared(400);
    launch();
    end(bytesFor(400));
    EXPECT_NEAR(nsBetween(first, mark()), 400 * kUs, 20 * kUs);
}

TEST_F(VgpuOperators, anOperatorThatWaitsPaysTheRestAfterwards) {
    const cudaEvent_t first = mark();
    begin(bytesFor(100));
    launch();
    const cudaEvent_t second = mark();
    EXPECT_NEAR(nsBetween(first, second), 100 * kUs, 20 * kUs);
    const cudaEvent_t third = mark();
    launch();
    end(bytesFor(350));
    EXPECT_NEAR(nsBetween(third, mark()), 250 * kUs, 20 * kUs);
}

TEST_F(VgpuOperators, aLoopOfTinyOperatorsIsBoundByItsHost) {
    EXPECT_EQ(g_hooks->operatorNs, 4000);
    begin();
    launch();
    end(bytesFor(1));
    const cudaEvent_t first = mark();
    for (int i = 0; i < 1000; i++) {
        g_hooks->hostWork(g_hooks->operatorNs);
        begin();
        launch();
        end(bytesFor(1));
    }
    // A launch costs the calling thread 2.2 us.
    EXPECT_NEAR(nsBetween(first, mark()), 1000 * (4 + 2.2) * kUs, 30 * kUs);
}

TEST_F(VgpuOperators, withoutAnOperatorAKernelIsPricedByItsGrid) {
    const cudaEvent_t first = mark();
    launch(1000);
    EXPECT_NEAR(nsBetween(first, mark()), 23 * kUs, 10 * kUs);
}

struct Step {
    int* value;
    int factor, summand;
    int* released;
};
void takeStep(void* data) {
    const auto* step = static_cast<Step*>(data);
    *step->value = *step->value * step->factor + step->summand;
}
void releaseStep(void* data) {
    ++*static_cast<Step*>(data)->released;
}

TEST_F(VgpuOperators, effectsHappenInTheOrderOfTheStreamAndTakeNoTime) {
    int* device = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int)), cudaSuccess);
    int one = 1, result = 0, released = 0;
    Step add{device, 1, 2, &released}, multiply{device, 10, 0, &released};
    ASSERT_EQ(cudaMemcpyAsync(device, &one, sizeof one, cudaMemcpyHostToDevice, m_stream), cudaSuccess);
    const cudaEvent_t before = mark(), first = mark();
    g_hooks->effect(0, m_stream, takeStep, &add, releaseStep);
    g_hooks->effect(0, m_stream, takeStep, &multiply, releaseStep);
    const cudaEvent_t second = mark();
    ASSERT_EQ(cudaMemcpyAsync(&result, device, sizeof result, cudaMemcpyDeviceToHost, m_stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(m_stream), cudaSuccess);
    EXPECT_EQ(result, 30);
    EXPECT_EQ(released, 2);
    EXPECT_DOUBLE_EQ(nsBetween(first, second), nsBetween(before, first));
}

TEST_F(VgpuOperators, aCapturedEffectHappensAtEachLaunchOfTheGraph) {
    int* device = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int)), cudaSuccess);
    int result = 0, released = 0;
    Step add{device, 1, 1, &released};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(m_stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    begin();
    launch();
    end(bytesFor(500));
    g_hooks->effect(0, m_stream, takeStep, &add, releaseStep);
    ASSERT_EQ(cudaStreamEndCapture(m_stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(released, 0);
    const cudaEvent_t first = mark();
    for (int i = 0; i < 3; i++) ASSERT_EQ(cudaGraphLaunch(exec, m_stream), cudaSuccess);
    EXPECT_NEAR(nsBetween(first, mark()), 1500 * kUs, 50 * kUs);
    ASSERT_EQ(cudaMemcpy(&result, device, sizeof result, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(result, 3);
}

TEST_F(VgpuOperators, anOperatorThatAsksTheDeviceGetsTheAnswer) {
    int64_t* device = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int64_t)), cudaSuccess);
    const int64_t answer = 7;
    int count = -1, other = -1;
    begin();
    g_hooks->answer(&answer);
    begin();  // an operator within it
    launch();
    end({});
    ASSERT_EQ(cudaMemcpyAsync(&count, device, sizeof count, cudaMemcpyDeviceToHost, m_stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(m_stream), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(&other, device, sizeof other, cudaMemcpyDeviceToHost), cudaSuccess);
    end({});
    EXPECT_EQ(count, 7);
    EXPECT_EQ(other, 0);
}

TEST_F(VgpuOperators, zeroedMemoryReadsAsZeroAndItsNeighboursKeepWhatTheyHave) {
    constexpr size_t kBytes = 1 << 20, kFrom = 4099, kTo = kBytes - 77;
    char* device = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), kBytes), cudaSuccess);
    std::memset(device, 1, kBytes);
    g_hooks->zero(device + kFrom, kTo - kFrom);
    size_t zeros = 0;
    for (size_t i = kFrom; i < kTo; i++) zeros += device[i] == 0;
    EXPECT_EQ(zeros, kTo - kFrom);
    EXPECT_EQ(device[kFrom - 1], 1);
    EXPECT_EQ(device[kTo], 1);
    std::vector<char> host(kBytes, 1);  // memory that is not a device's
    g_hooks->zero(host.data() + 1, kBytes - 2);
    EXPECT_EQ(host[0] + host[1] + host[kBytes / 2] + host[kBytes - 2] + host[kBytes - 1], 2);
}

}  // namespace
