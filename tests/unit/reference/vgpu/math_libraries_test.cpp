// SPDX-License-Identifier: Apache-2.0
// cuBLAS, cuBLASLt and cuDNN as programs call them.
#include <dlfcn.h>

#include <algorithm>
#include <fstream>

#include "own_job.h"
#include "reference/vgpu/math/matrix_product.h"

// As far as they are called here, by NVIDIA's documentation.
extern "C" {
int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSetMathMode(void* handle, int mode);
int cublasGemmEx(void* handle, int transA, int transB, int m, int n, int k, const void* alpha, const void* a, int aType,
                 int lda, const void* b, int bType, int ldb, const void* beta, void* c, int cType, int ldc,
                 int computeType, int algorithm);
int cublasSgemm_v2(void* handle, int transA, int transB, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc);
int cublasSgemmStridedBatched(void* handle, int transA, int transB, int m, int n, int k, const float* alpha,
                              const float* a, int lda, long long strideA, const float* b, int ldb, long long strideB,
                              const float* beta, float* c, int ldc, long long strideC, int batch);
int cublasSsymm_v2(void);
int cublasLtMatmulDescCreate(void** descriptor, int computeType, int scaleType);
int cublasLtMatmulDescSetAttribute(void* descriptor, int which, const void* value, size_t bytes);
int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatmul(void* handle, void* descriptor, const void* alpha, const void* a, void* aLayout, const void* b,
                   void* bLayout, const void* beta, const void* c, void* cLayout, void* d, void* dLayout,
                   const void* algorithm, void* workspace, size_t bytes, cudaStream_t stream);
}

namespace {

constexpr int kBf16 = 14, kF32 = 0, kCompute32f = 68, kTf32Mode = 3;
// The defaults of a cluster, of which no scenario tells here.
constexpr double kTflops = 300, kHbmGbps = 2000;

class MathLibraries : public OwnJob {
  protected:
    void SetUp() override { ASSERT_EQ(cublasCreate_v2(&m_handle), 0); }
    void TearDown() override { cublasDestroy_v2(m_handle); }

    double gemm(int m, int n, int k, int type) {
        return microseconds([&] {
            EXPECT_EQ(cublasGemmEx(m_handle, 0, 0, m, n, k, &m_one, nullptr, type, m, nullptr, type, k, &m_one, nullptr,
                                   type, m, kCompute32f, -1),
                      0);
        });
    }

    void* m_handle = nullptr;
    float m_one = 1;
};

TEST_F(MathLibraries, AProductTakesItsFlopAtThePeakOfItsType) {
    const double bf16 = 2.0 * 4096 * 4096 * 4096 / (kTflops * 1e6);
    EXPECT_NEAR(gemm(4096, 4096, 4096, kBf16), bf16, 0.01 * bf16);
    EXPECT_NEAR(gemm(4096, 4096, 4096, kF32), 16 * bf16, 0.16 * bf16);  // 312 : 19.5
    cublasSetMathMode(m_handle, kTf32Mode);
    EXPECT_NEAR(gemm(4096, 4096, 4096, kF32), 2 * bf16, 0.02 * bf16);  // 312 : 156
}

TEST_F(MathLibraries, AProductThatIsAllMemoryTakesItsBytes) {
    constexpr double kRows = 1 << 20, kColumns = 8, kInner = 8;
    const double bytes = 2 * (kRows * kInner + kInner * kColumns + kRows * kColumns);
    EXPECT_NEAR(gemm(1 << 20, 8, 8, kBf16), bytes / (kHbmGbps * 1e3), 0.1);
}

TEST_F(MathLibraries, ABatchCostsAsManyProducts) {
    const auto one = microseconds([&] {
        cublasSgemm_v2(m_handle, 0, 0, 512, 512, 512, &m_one, nullptr, 512, nullptr, 512, &m_one, nullptr, 512);
    });
    const auto eight = microseconds([&] {
        cublasSgemmStridedBatched(m_handle, 0, 0, 512, 512, 512, &m_one, nullptr, 512, 0, nullptr, 512, 0, &m_one,
                                  nullptr, 512, 0, 8);
    });
    EXPECT_NEAR(eight, 8 * one, 0.1);
}

TEST_F(MathLibraries, AnLtProductCostsWhatItsLayoutsSay) {
    // D (3072 x 1024) = A^T (A: 2048 x 3072) B (2048 x 1024)
    void *descriptor, *a, *b, *d;
    const int32_t transposed = 1;
    constexpr int kTransA = 3;
    ASSERT_EQ(cublasLtMatmulDescCreate(&descriptor, kCompute32f, kF32), 0);
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(descriptor, kTransA, &transposed, sizeof transposed), 0);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&a, kBf16, 2048, 3072, 2048), 0);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&b, kBf16, 2048, 1024, 2048), 0);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&d, kBf16, 3072, 1024, 3072), 0);
    const double lt = microseconds([&] {
        EXPECT_EQ(cublasLtMatmul(nullptr, descriptor, &m_one, nullptr, a, nullptr, b, &m_one, nullptr, d, nullptr, d,
                                 nullptr, nullptr, 0, nullptr),
                  0);
    });
    EXPECT_NEAR(lt, gemm(3072, 1024, 2048, kBf16), 0.01);
}

TEST_F(MathLibraries, WhatIsNotModelledEndsTheProcessByName) {
    EXPECT_EXIT(cublasSsymm_v2(), testing::ExitedWithCode(69), "cublasSsymm_v2 of libcublas.so.13.*hint");
}

TEST(SymbolLists, EveryNameIsThereUnderTheVersionThatProgramsAskFor) {
    const struct {
        const char *list, *library, *version;
    } libraries[] = {{"cudart", "libcudart.so.13", "libcudart.so.13"},
                     {"cupti", "libcupti.so.13", "libcupti.so.13"},
                     {"cublas", "libcublas.so.13", "libcublas.so.13"},
                     {"cublasLt", "libcublasLt.so.13", "libcublasLt.so.13"},
                     {"cudnn", "libcudnn.so.9", "libcudnn.so.9"},
                     {"cusparse", "libcusparse.so.12", "libcusparse.so.12"},
                     {"cusolver", "libcusolver.so.12", "libcusolver.so.12"},
                     {"cufft", "libcufft.so.12", "libcufft.so.12"},
                     {"cudart12", "libcudart.so.12", "libcudart.so.12"},
                     {"cupti12", "libcupti.so.12", "libcupti.so.12"},
                     {"cublas12", "libcublas.so.12", "libcublas.so.12"},
                     {"cublasLt12", "libcublasLt.so.12", "libcublasLt.so.12"},
                     {"cusolver11", "libcusolver.so.11", "libcusolver.so.11"},
                     {"cufft11", "libcufft.so.11", "libcufft.so.11"},
                     {"nccl", "libnccl.so.2", nullptr},
                     {"cuda", "libcuda.so.1", nullptr},
                     {"cusparseLt", "libcusparseLt.so.0", nullptr}};
    for (const auto& library : libraries) {
        void* opened = dlopen((std::string(VGPU_FOLDER "/") + library.library).c_str(), RTLD_LAZY);
        ASSERT_NE(opened, nullptr) << dlerror();
        std::ifstream names(std::string(VGPU_SYMBOLS "/") + library.list + ".txt");
        int count = 0;
        for (std::string name; std::getline(names, name);) {
            if (name.empty() || name.front() == '#') continue;
            name.erase(std::min(name.find(' '), name.size()));  // what marks it
            void* symbol =
                library.version ? dlvsym(opened, name.c_str(), library.version) : dlsym(opened, name.c_str());
            EXPECT_NE(symbol, nullptr) << name << " of " << library.library;
            count++;
        }
        EXPECT_GT(count, 20) << library.list;
    }
}

TEST(MatrixProduct, AComplexProductHasFourTimesTheFlop) {
    using namespace rankscope::vgpu::math;
    MatrixProduct product{.m = 64, .n = 64, .k = 64, .arithmetic = {DataType::f64, DataType::f64}};
    const double real = costOf(product).flop;
    product.arithmetic = {DataType::c64, DataType::c64};
    EXPECT_DOUBLE_EQ(costOf(product).flop, 4 * real);
}

}  // namespace
