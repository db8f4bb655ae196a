// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's backend API: what was set, by attribute. Numbers are those of NVIDIA's "cuDNN Backend API"
// (9.x).
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace rankscope::vgpu::math {

enum BackendType : int {
    kBackendConvolution = 1,
    kBackendEngine = 2,
    kBackendEngineConfig = 3,
    kBackendHeuristics = 4,
    kBackendPlan = 5,
    kBackendConvolutionForward = 10,
    kBackendConvolutionFilter = 11,
    kBackendConvolutionData = 12,
    kBackendPointwise = 13,
    kBackendStatistics = 14,
    kBackendGraph = 15,
    kBackendTensor = 17,
    kBackendMatmul = 19,
    kBackendNormFinalize = 20,
    kBackendReduction = 22,
    kBackendNormWeights = 23,
    kBackendResampleForward = 25,
    kBackendResampleBackward = 26,
    kBackendConcat = 27,
    kBackendNormForward = 29,
    kBackendNormBackward = 30,
    kBackendReshape = 31,
    kBackendRandom = 33,
    kBackendAttentionForward = 41,
    kBackendAttentionBackward = 43,
    kBackendBandMask = 44,
    kBackendSoftmax = 45,
    kBackendTranspose = 46,
    kBackendSlice = 47,
};

enum BackendAttribute : int {
    kHeuristicsGraph = 201,
    kHeuristicsResults = 202,
    kConfigEngine = 300,
    kPlanConfig = 401,
    kPlanWorkspace = 402,
    kForwardW = 703,
    kForwardX = 704,
    kForwardY = 705,
    kDataW = 709,
    kDataDy = 711,
    kFilterDw = 715,
    kFilterDy = 717,
    kGraphOperations = 801,
    kGraphEngineCount = 802,
    kTensorType = 901,
    kTensorDimensions = 902,
    kTensorId = 906,
    kTensorIsVirtual = 907,
    kEngineGraph = 1300,
    kEngineIndex = 1301,
    kEngineNumericalNote = 1303,
    kMatmulA = 1520,
    kMatmulB = 1521,
    kMatmulC = 1522,
    kAttentionQ = 2800,
    kAttentionK = 2801,
    kAttentionV = 2802,
    kAttentionBackwardQ = 2851,
    kAttentionBackwardK = 2852,
    kAttentionBackwardV = 2853,
};

/// cudnnBackendAttributeType_t, as far as values are made here.
enum ValueType : int { kTypeInt64 = 3, kTypeNumericalNote = 11, kTypeDescriptor = 15 };

struct DescriptorData;
using Descriptor = std::shared_ptr<const DescriptorData>;

/// One attribute: plain values, or other descriptors as they were when they were set.
struct AttributeValue {
    int type = 0;
    int64_t count = 0;
    std::vector<char> bytes;
    std::vector<Descriptor> descriptors;
};

struct DescriptorData {
    int type = 0;
    std::map<int, AttributeValue> attributes;

    Descriptor child(int attribute) const {
        const auto found = attributes.find(attribute);
        return found == attributes.end() || found->second.descriptors.empty() ? nullptr
                                                                              : found->second.descriptors.front();
    }
    template <typename Number>
    std::vector<Number> numbers(int attribute) const {
        const auto found = attributes.find(attribute);
        if (found == attributes.end()) return {};
        std::vector<Number> values(found->second.bytes.size() / sizeof(Number));
        std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(Number));
        return values;
    }
    template <typename Number>
    Number number(int attribute, Number otherwise) const {
        const auto values = numbers<Number>(attribute);
        return values.empty() ? otherwise : values.front();
    }
};

}  // namespace rankscope::vgpu::math
