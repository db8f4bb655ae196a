// SPDX-License-Identifier: Apache-2.0
// Prices of cuDNN's graphs, whose descriptors are made as programs make them.
#include "reference/vgpu/math/cudnn_graph.h"

#include <deque>

#include "own_job.h"

extern "C" {
int cudnnBackendCreateDescriptor(int type, void** descriptor);
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count, const void* elements);
int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t asked, int64_t* count, void* elements);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendExecute(void* handle, void* plan, void* variants);
int cudnnCreate(void** handle);
}

namespace {

using namespace rankscope::vgpu::math;

constexpr int kTypeDataType = 1, kTypeBoolean = 2, kCudnnFloat = 0, kCudnnBf16 = 9;
constexpr int kBackendVariantPack = 16, kMixtureOfExpertsProduct = 42;

void* made(int type) {
    void* descriptor = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &descriptor), 0);
    return descriptor;
}

void* tensor(int64_t id, std::vector<int64_t> dimensions, int type, bool isVirtual = false) {
    void* descriptor = made(kBackendTensor);
    const auto flag = static_cast<char>(isVirtual);
    cudnnBackendSetAttribute(descriptor, kTensorType, kTypeDataType, 1, &type);
    cudnnBackendSetAttribute(descriptor, kTensorDimensions, kTypeInt64, static_cast<int64_t>(dimensions.size()),
                             dimensions.data());
    cudnnBackendSetAttribute(descriptor, kTensorId, kTypeInt64, 1, &id);
    cudnnBackendSetAttribute(descriptor, kTensorIsVirtual, kTypeBoolean, 1, &flag);
    EXPECT_EQ(cudnnBackendFinalize(descriptor), 0);
    return descriptor;
}

void* operation(int type, std::vector<std::pair<int, void*>> tensors) {
    void* descriptor = made(type);
    for (auto& [attribute, child] : tensors)
        cudnnBackendSetAttribute(descriptor, attribute, kTypeDescriptor, 1, &child);
    EXPECT_EQ(cudnnBackendFinalize(descriptor), 0);
    return descriptor;
}

void* graphOf(std::vector<void*> operations) {
    void* graph = made(kBackendGraph);
    cudnnBackendSetAttribute(graph, kGraphOperations, kTypeDescriptor, static_cast<int64_t>(operations.size()),
                             operations.data());
    EXPECT_EQ(cudnnBackendFinalize(graph), 0);
    return graph;
}

/// 64 filters of 3 x 3 over 64 channels of 56 x 56, of 8 images.
void* convolution(int type) {
    return operation(kBackendConvolutionForward, {{kForwardX, tensor('x', {8, 64, 56, 56}, type)},
                                                  {kForwardW, tensor('w', {64, 64, 3, 3}, type)},
                                                  {kForwardY, tensor('y', {8, 64, 56, 56}, type)}});
}
constexpr double kConvolutionFlop = 2.0 * 8 * 64 * 56 * 56 * 64 * 3 * 3;

std::vector<void*> configsOf(void* graph) {
    void* heuristics = made(kBackendHeuristics);
    cudnnBackendSetAttribute(heuristics, kHeuristicsGraph, kTypeDescriptor, 1, &graph);
    cudnnBackendFinalize(heuristics);
    int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, kHeuristicsResults, kTypeDescriptor, 0, &count, nullptr), 0);
    std::vector<void*> configs;
    for (int64_t i = 0; i < count; i++) configs.push_back(made(kBackendEngineConfig));
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, kHeuristicsResults, kTypeDescriptor, count, &count, configs.data()),
              0);
    return configs;
}

/// Device time of a plan made of an engine configuration.
class CudnnGraph : public OwnJob {
  protected:
    static double planTime(void* config) {
        void *handle = nullptr, *plan = made(kBackendPlan), *variants = made(kBackendVariantPack);
        EXPECT_EQ(cudnnCreate(&handle), 0);
        cudnnBackendSetAttribute(plan, kPlanConfig, kTypeDescriptor, 1, &config);
        EXPECT_EQ(cudnnBackendFinalize(plan), 0);
        return microseconds([&] { EXPECT_EQ(cudnnBackendExecute(handle, plan, variants), 0); });
    }
};

TEST_F(CudnnGraph, AConvolutionInBf16HasOneEngineAndTakesItsFlop) {
    const auto configs = configsOf(graphOf({convolution(kCudnnBf16)}));
    ASSERT_EQ(configs.size(), 1u);
    EXPECT_NEAR(planTime(configs[0]), kConvolutionFlop / 300e6, 0.01);
}

TEST_F(CudnnGraph, FloatsHaveAnEngineWithTf32FirstAndASlowerOneWithout) {
    const auto configs = configsOf(graphOf({convolution(kCudnnFloat)}));
    ASSERT_EQ(configs.size(), 2u);
    EXPECT_NEAR(planTime(configs[0]), 2 * kConvolutionFlop / 300e6, 0.01);
    EXPECT_NEAR(planTime(configs[1]), 16 * kConvolutionFlop / 300e6, 0.01);
    void* engine = made(kBackendEngine);
    int64_t notes = -1, count = 0;
    for (int64_t expected : {1, 0}) {
        cudnnBackendGetAttribute(configs[expected == 1 ? 0 : 1], kConfigEngine, kTypeDescriptor, 1, &count, &engine);
        cudnnBackendGetAttribute(engine, kEngineNumericalNote, kTypeNumericalNote, 0, &notes, nullptr);
        EXPECT_EQ(notes, expected);
    }
}

TEST_F(CudnnGraph, FewerResultsThanThereAreAreGivenWhenFewerAreAskedFor) {
    void *graph = graphOf({convolution(kCudnnFloat)}), *heuristics = made(kBackendHeuristics),
         *config = made(kBackendEngineConfig);
    cudnnBackendSetAttribute(heuristics, kHeuristicsGraph, kTypeDescriptor, 1, &graph);
    int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, kHeuristicsResults, kTypeDescriptor, 1, &count, &config), 0);
    EXPECT_EQ(count, 1);
}

TEST_F(CudnnGraph, TensorsBetweenOperationsCostNoMemory) {
    const std::vector<int64_t> large = {64, 64, 224, 224};
    const auto chain = [&](bool isVirtual) {
        void* between = tensor('t', large, kCudnnBf16, isVirtual);
        constexpr int kPointwiseX = 751, kPointwiseY = 753;
        void* first =
            operation(kBackendPointwise, {{kPointwiseX, tensor('x', large, kCudnnBf16)}, {kPointwiseY, between}});
        void* second =
            operation(kBackendPointwise, {{kPointwiseX, between}, {kPointwiseY, tensor('y', large, kCudnnBf16)}});
        return planTime(configsOf(graphOf({first, second})).at(0));
    };
    const double tensorTime = 2.0 * 64 * 64 * 224 * 224 / 2000e3;
    EXPECT_NEAR(chain(true), 2 * tensorTime, 0.01);
    EXPECT_NEAR(chain(false), 3 * tensorTime, 0.01);
}

TEST_F(CudnnGraph, AnOperationThatIsNotModelledEndsTheProcessByItsNumber) {
    EXPECT_EXIT(graphOf({operation(kMixtureOfExpertsProduct, {})}), testing::ExitedWithCode(69),
                "an operation of descriptor type 42 of libcudnn.so.9");
}

}  // namespace
