// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/math/cudnn_graph.h"

#include <algorithm>
#include <set>

#include "reference/vgpu/math/cudnn_types.h"

namespace rankscope::vgpu::math {
namespace {

using Dimensions = std::vector<int64_t>;

const std::vector<Descriptor>& operationsOf(const DescriptorData& graph) {
    static const std::vector<Descriptor> none;
    const auto found = graph.attributes.find(kGraphOperations);
    return found == graph.attributes.end() ? none : found->second.descriptors;
}

Dimensions dimensionsOf(const Descriptor& tensor) {
    return tensor ? tensor->numbers<int64_t>(kTensorDimensions) : Dimensions{};
}

double product(const Dimensions& dimensions) {
    double all = dimensions.empty() ? 0 : 1;
    for (const int64_t size : dimensions) all *= static_cast<double>(size);
    return all;
}

DataType typeOf(const Descriptor& tensor) {
    return typeOfCudnn(tensor ? tensor->number<int32_t>(kTensorType, 0) : 0);
}

/// What an operation multiplies, and the type of its operands. No flop: it only moves data.
struct Multiplication {
    double flop = 0;
    DataType type = DataType::f32;
    const char* name = "";
};

/// Each element of the response is a sum over a filter: 2 x |y| x |w| / (number of filters), also backward.
Multiplication convolution(const Descriptor& filter, const Descriptor& response, const char* name) {
    const Dimensions w = dimensionsOf(filter);
    if (w.empty() || w.front() == 0) return {};
    return {2 * product(dimensionsOf(response)) * product(w) / static_cast<double>(w.front()), typeOf(response), name};
}

/// A: …, m, k; C: …, m, n.
Multiplication matmul(const DescriptorData& operation) {
    const Dimensions a = dimensionsOf(operation.child(kMatmulA));
    if (a.empty()) return {};
    return {2 * product(dimensionsOf(operation.child(kMatmulC))) * static_cast<double>(a.back()),
            typeOf(operation.child(kMatmulA)), "matmul"};
}

/// Q: batch, heads, queries, size; K and V with keys instead. Two products forward, five backward.
Multiplication attention(const DescriptorData& operation, int q, int k, int v, double products) {
    const Dimensions queries = dimensionsOf(operation.child(q)), keys = dimensionsOf(operation.child(k)),
                     values = dimensionsOf(operation.child(v));
    if (queries.size() != 4 || keys.size() != 4 || values.size() != 4) return {};
    const double one = product(queries) * static_cast<double>(keys[2]) * static_cast<double>(queries[3] + values[3]) /
                       static_cast<double>(queries[3]);
    return {one * products, typeOf(operation.child(q)), products > 2 ? "sdpa_backward" : "sdpa_forward"};
}

Multiplication multiplicationOf(const DescriptorData& operation) {
    switch (operation.type) {
        case kBackendConvolutionForward:
            return convolution(operation.child(kForwardW), operation.child(kForwardY), "fprop");
        case kBackendConvolutionData:
            return convolution(operation.child(kDataW), operation.child(kDataDy), "dgrad");
        case kBackendConvolutionFilter:
            return convolution(operation.child(kFilterDw), operation.child(kFilterDy), "wgrad");
        case kBackendMatmul:
            return matmul(operation);
        case kBackendAttentionForward:
            return attention(operation, kAttentionQ, kAttentionK, kAttentionV, 2);
        case kBackendAttentionBackward:
            return attention(operation, kAttentionBackwardQ, kAttentionBackwardK, kAttentionBackwardV, 5);
        default:
            return {};
    }
}

const char* typeName(DataType type, bool tf32) {
    switch (type) {
        case DataType::bf16:
            return "bf16bf16_bf16f32_f32";
        case DataType::f16:
            return "f16f16_f16f32_f32";
        case DataType::f64:
            return "f64f64_f64f64_f64";
        case DataType::s8:
            return "i8i8_i8i32_f32";
        default:
            return tf32 ? "tf32f32_tf32f32_f32" : "f32f32_f32f32_f32";
    }
}

/// As cuDNN calls its kernels for the A100.
std::string kernelName(const Multiplication& heaviest, bool tf32) {
    if (heaviest.flop == 0) return "cudnn_generated_fort_native_pointwise";
    const std::string operation = heaviest.name;
    if (operation.starts_with("sdpa")) return "cudnn_generated_fort_native_" + operation + "_sm80_flash";
    if (operation == "matmul") return std::string("sm80_xmma_gemm_") + typeName(heaviest.type, tf32) + "_cudnn";
    return "sm80_xmma_" + operation + "_implicit_gemm_" + typeName(heaviest.type, tf32) +
           "_nhwckrsc_nhwc_tilesize128x128x32_kernel_cudnn";
}

/// Tensors that are in memory, each once.
void addTensors(const DescriptorData& operation, std::set<int64_t>& seen, GraphPrice& price) {
    for (const auto& [attribute, value] : operation.attributes)
        for (const Descriptor& tensor : value.descriptors) {
            if (tensor->type != kBackendTensor || tensor->number<char>(kTensorIsVirtual, 0)) continue;
            if (!seen.insert(tensor->number<int64_t>(kTensorId, 0)).second) continue;
            const double elements = product(dimensionsOf(tensor));
            price.elements = std::max(price.elements, elements);
            price.cost.bytes += elements * elementBytes(typeOf(tensor));
        }
}

}  // namespace

std::string unknownOperation(const DescriptorData& graph) {
    static const std::set<int> known = {kBackendConvolutionForward,
                                        kBackendConvolutionFilter,
                                        kBackendConvolutionData,
                                        kBackendPointwise,
                                        kBackendStatistics,
                                        kBackendMatmul,
                                        kBackendNormFinalize,
                                        kBackendReduction,
                                        kBackendNormWeights,
                                        kBackendResampleForward,
                                        kBackendResampleBackward,
                                        kBackendConcat,
                                        kBackendNormForward,
                                        kBackendNormBackward,
                                        kBackendReshape,
                                        kBackendRandom,
                                        kBackendAttentionForward,
                                        kBackendAttentionBackward,
                                        kBackendBandMask,
                                        kBackendSoftmax,
                                        kBackendTranspose,
                                        kBackendSlice};
    for (const Descriptor& operation : operationsOf(graph))
        if (!known.contains(operation->type))
            return "cudnnBackendFinalize of a graph with an operation of descriptor type " +
                   std::to_string(operation->type);
    return "";
}

bool multipliesFloats(const DescriptorData& graph) {
    return std::ranges::any_of(operationsOf(graph), [](const Descriptor& operation) {
        const Multiplication one = multiplicationOf(*operation);
        return one.flop > 0 && one.type == DataType::f32;
    });
}

GraphPrice priceOf(const DescriptorData& graph, int64_t engine) {
    const bool tf32 = engine == kTensorCoreEngine;
    GraphPrice price;
    Multiplication heaviest;
    std::set<int64_t> seen;
    for (const Descriptor& operation : operationsOf(graph)) {
        const Multiplication one = multiplicationOf(*operation);
        if (one.flop > heaviest.flop) heaviest = one;
        if (one.flop > 0) price.cost.flop += one.flop / peakShare({one.type, one.type, tf32});
        addTensors(*operation, seen, price);
    }
    price.kernel = kernelName(heaviest, tf32);
    return price;
}

}  // namespace rankscope::vgpu::math
