// SPDX-License-Identifier: Apache-2.0
// What programs built for CUDA 12 find under the sonames that they ask for.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "own_job.h"

namespace {

/// A library as such a program finds it: beside librankscope_vgpu.so.
class Cuda12 : public OwnJob {
  protected:
    static void* opened(const std::string& soname) {
        void* library = dlopen((VGPU_FOLDER "/" + soname).c_str(), RTLD_LAZY);
        EXPECT_NE(library, nullptr) << dlerror();
        return library;
    }
    template <typename Function>
    static Function* cudart(const char* name) {
        auto* function = reinterpret_cast<Function*>(dlvsym(opened("libcudart.so.12"), name, "libcudart.so.12"));
        EXPECT_NE(function, nullptr) << name;
        return function;
    }
};

/// An area of `Bytes` with a border behind it, which must stay as it was.
template <size_t Bytes>
struct Bordered {
    alignas(8) std::array<unsigned char, Bytes + 64> bytes;
    Bordered() { bytes.fill(0xa5); }
    template <typename Value>
    Value at(size_t offset) const {
        Value value;
        std::memcpy(&value, bytes.data() + offset, sizeof value);
        return value;
    }
    bool borderIsWhole() const {
        for (size_t i = Bytes; i < bytes.size(); i++)
            if (bytes[i] != 0xa5) return false;
        return true;
    }
};

TEST_F(Cuda12, TheRuntimeSaysThatItIsOne) {
    int older = 0, newer = 0;
    EXPECT_EQ(cudart<int(int*)>("cudaRuntimeGetVersion")(&older), 0);
    EXPECT_EQ(older / 1000, 12);
    EXPECT_EQ(cudaRuntimeGetVersion(&newer), cudaSuccess);
    EXPECT_EQ(newer, CUDART_VERSION);
}

TEST_F(Cuda12, APropertyLiesWhereItsHeadersHaveIt) {
    // Offsets by CUDA 12.8's driver_types.h.
    constexpr size_t kSize = 1032, kSizeIn11 = 728, kClockRate = 348, kMajor = 360, kMultiprocessors = 388, kWarp = 308;
    cudaDeviceProp newer;
    ASSERT_EQ(cudaGetDeviceProperties(&newer, 0), cudaSuccess);
    const auto check = [&](const auto& older) {
        EXPECT_STREQ(reinterpret_cast<const char*>(older.bytes.data()), newer.name);
        EXPECT_EQ(older.template at<int>(kWarp), 32);
        EXPECT_EQ(older.template at<int>(kMajor), newer.major);
        EXPECT_EQ(older.template at<int>(kMultiprocessors), newer.multiProcessorCount);
        int clock = 0;
        EXPECT_EQ(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0), cudaSuccess);
        EXPECT_EQ(older.template at<int>(kClockRate), clock);
        EXPECT_TRUE(older.borderIsWhole());
    };
    Bordered<kSize> by12;
    ASSERT_EQ(cudart<int(void*, int)>("cudaGetDeviceProperties_v2")(by12.bytes.data(), 0), 0);
    check(by12);
    Bordered<kSizeIn11> by11;
    ASSERT_EQ(cudart<int(void*, int)>("cudaGetDeviceProperties")(by11.bytes.data(), 0), 0);
    check(by11);
    EXPECT_EQ(cudart<int(void*, int)>("cudaGetDeviceProperties_v2")(nullptr, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudart<int(void*, int)>("cudaGetDeviceProperties_v2")(by12.bytes.data(), 99), cudaErrorInvalidDevice);
}

TEST_F(Cuda12, APointersAttributesAreShorter) {
    void* memory = nullptr;
    ASSERT_EQ(cudart<int(void**, size_t)>("cudaMalloc")(&memory, 64), 0);
    Bordered<24> attributes;
    ASSERT_EQ(cudart<int(void*, const void*)>("cudaPointerGetAttributes")(attributes.bytes.data(), memory), 0);
    EXPECT_EQ(attributes.at<int>(0), cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.at<void*>(8), memory);
    EXPECT_TRUE(attributes.borderIsWhole());
    EXPECT_EQ(cudart<int(void*)>("cudaFree")(memory), 0);
}

TEST_F(Cuda12, CapturesAreToldWithAndWithoutEdges) {
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    cudaStreamCaptureStatus status{};
    unsigned long long first = 0, second = 0;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* nodes = nullptr;
    size_t count = 99;
    using Oldest = int(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*);
    using Older = int(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                      const cudaGraphNode_t**, size_t*);
    EXPECT_EQ(cudart<Oldest>("cudaStreamGetCaptureInfo")(stream, &status, &first), 0);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudart<Older>("cudaStreamGetCaptureInfo_v2")(stream, &status, &second, &graph, &nodes, &count), 0);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_EQ(first, second);
    EXPECT_EQ(count, 0u);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaStreamDestroy(stream);
}

TEST_F(Cuda12, TheLibrariesOfMathematicsPassOn) {
    auto* create =
        reinterpret_cast<int (*)(void**)>(dlvsym(opened("libcublas.so.12"), "cublasCreate_v2", "libcublas.so.12"));
    auto* destroy =
        reinterpret_cast<int (*)(void*)>(dlvsym(opened("libcublas.so.12"), "cublasDestroy_v2", "libcublas.so.12"));
    ASSERT_TRUE(create && destroy);
    void* handle = nullptr;
    ASSERT_EQ(create(&handle), 0);
    EXPECT_NE(handle, nullptr);
    EXPECT_EQ(destroy(handle), 0);
}

TEST_F(Cuda12, WhatIsNotModelledEndsTheProcessByName) {
    EXPECT_EXIT(cudart<int()>("cudaThreadExit")(), testing::ExitedWithCode(69),
                "cudaThreadExit of libcudart.so.12.*hint");
    // Its namesake of CUDA 13 takes a structure instead of a number.
    EXPECT_EXIT(cudart<int()>("cudaMemAdvise")(), testing::ExitedWithCode(69),
                "cudaMemAdvise of libcudart.so.12.*hint");
}

}  // namespace
