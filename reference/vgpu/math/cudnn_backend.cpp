// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend API, through which PyTorch convolves and attends: descriptors are kept, a graph gets an engine, or
// two where TF32 makes a difference, and its execution is one kernel of the graph's price.
#include <algorithm>
#include <memory>

#include "reference/vgpu/device/refusal.h"
#include "reference/vgpu/math/cudnn_graph.h"
#include "reference/vgpu/math/cudnn_types.h"

using namespace rankscope::vgpu::math;

namespace {

/// What a program holds: a descriptor that it can still change, until it is finalized.
struct Held {
    std::shared_ptr<DescriptorData> data;
    bool isFinal = false;
};

constexpr int32_t kNoteTensorCore = 0;  // cudnnBackendNumericalNote_t

size_t valueBytes(int type) {
    switch (type) {
        case 2:  // boolean
        case 24:
            return 1;
        case 0:  // handle
        case kTypeInt64:
        case 5:  // double
        case 6:  // pointer
        case kTypeDescriptor:
        case 26:  // fraction, of which both halves are int64
            return type == 26 ? 16 : 8;
        default:
            return 4;  // enumerations, float, int32
    }
}

template <typename Number>
AttributeValue valueOf(int type, const std::vector<Number>& numbers) {
    AttributeValue value;
    value.type = type;
    value.count = static_cast<int64_t>(numbers.size());
    const auto* begin = reinterpret_cast<const char*>(numbers.data());
    value.bytes.assign(begin, begin + numbers.size() * sizeof(Number));
    return value;
}

AttributeValue valueOf(std::vector<Descriptor> descriptors) {
    AttributeValue value;
    value.type = kTypeDescriptor;
    value.count = static_cast<int64_t>(descriptors.size());
    value.descriptors = std::move(descriptors);
    return value;
}

Descriptor engineConfig(const Descriptor& graph, int64_t index) {
    auto engine = std::make_shared<DescriptorData>();
    engine->type = kBackendEngine;
    engine->attributes[kEngineGraph] = valueOf({graph});
    engine->attributes[kEngineIndex] = valueOf<int64_t>(kTypeInt64, {index});
    auto config = std::make_shared<DescriptorData>();
    config->type = kBackendEngineConfig;
    config->attributes[kConfigEngine] = valueOf({engine});
    return config;
}

/// What cuDNN works out itself when it is asked.
AttributeValue computed(const DescriptorData& data, int attribute) {
    if (data.type == kBackendHeuristics && attribute == kHeuristicsResults) {
        const Descriptor graph = data.child(kHeuristicsGraph);
        if (!graph) return valueOf({});
        std::vector<Descriptor> configs = {engineConfig(graph, kTensorCoreEngine)};
        if (multipliesFloats(*graph)) configs.push_back(engineConfig(graph, kFullPrecisionEngine));
        return valueOf(std::move(configs));
    }
    if (data.type == kBackendEngine && attribute == kEngineNumericalNote) {
        const Descriptor graph = data.child(kEngineGraph);
        const bool cuts =
            graph && multipliesFloats(*graph) && data.number<int64_t>(kEngineIndex, 0) == kTensorCoreEngine;
        return valueOf<int32_t>(kTypeNumericalNote, cuts ? std::vector{kNoteTensorCore} : std::vector<int32_t>{});
    }
    if (data.type == kBackendPlan && attribute == kPlanWorkspace) return valueOf<int64_t>(kTypeInt64, {0});
    if (data.type == kBackendGraph && attribute == kGraphEngineCount)
        return valueOf<int64_t>(kTypeInt64, {multipliesFloats(data) ? 2 : 1});
    const auto found = data.attributes.find(attribute);
    return found == data.attributes.end() ? AttributeValue{} : found->second;
}

/// Fills descriptors that the caller made for the purpose.
int fillDescriptors(const AttributeValue& value, int64_t room, void* into) {
    auto** held = static_cast<Held**>(into);
    for (int64_t i = 0; i < std::min(room, value.count); i++) {
        if (!held[i]) return kCudnnBadParameter;
        held[i]->data = std::make_shared<DescriptorData>(*value.descriptors[static_cast<size_t>(i)]);
        held[i]->isFinal = true;
    }
    return kCudnnSuccess;
}

}  // namespace

extern "C" {

int cudnnBackendCreateDescriptor(int type, Held** descriptor) {
    if (!descriptor) return kCudnnBadParameter;
    *descriptor = new Held{std::make_shared<DescriptorData>()};
    (*descriptor)->data->type = type;
    return kCudnnSuccess;
}
int cudnnBackendDestroyDescriptor(Held* descriptor) {
    delete descriptor;
    return kCudnnSuccess;
}
int cudnnBackendInitialize(Held* descriptor) {
    return descriptor ? kCudnnSuccess : kCudnnBadParameter;
}

int cudnnBackendSetAttribute(Held* descriptor, int attribute, int type, int64_t count, const void* elements) {
    if (!descriptor || descriptor->isFinal || count < 0 || (count > 0 && !elements)) return kCudnnBadParameter;
    AttributeValue value;
    value.type = type;
    value.count = count;
    if (type == kTypeDescriptor) {
        auto* const* held = static_cast<Held* const*>(elements);
        for (int64_t i = 0; i < count; i++) {
            if (!held[i]) return kCudnnBadParameter;
            value.descriptors.push_back(held[i]->data);
        }
    } else {
        const auto* begin = static_cast<const char*>(elements);
        value.bytes.assign(begin, begin + static_cast<size_t>(count) * valueBytes(type));
    }
    descriptor->data->attributes[attribute] = std::move(value);
    return kCudnnSuccess;
}

int cudnnBackendGetAttribute(Held* descriptor, int attribute, int type, int64_t asked, int64_t* count, void* elements) {
    if (!descriptor) return kCudnnBadParameter;
    const AttributeValue value = computed(*descriptor->data, attribute);
    if (count) *count = value.count;  // as many as there are
    if (asked == 0 || !elements || value.count == 0) return kCudnnSuccess;
    if (value.type != type) return kCudnnBadParameter;
    if (count) *count = std::min(asked, value.count);  // as many as were given
    if (type == kTypeDescriptor) return fillDescriptors(value, asked, elements);
    const size_t bytes = std::min(value.bytes.size(), static_cast<size_t>(asked) * valueBytes(type));
    std::memcpy(elements, value.bytes.data(), bytes);
    return kCudnnSuccess;
}

int cudnnBackendFinalize(Held* descriptor) {
    if (!descriptor) return kCudnnBadParameter;
    if (descriptor->data->type == kBackendGraph)
        if (const std::string unknown = unknownOperation(*descriptor->data); !unknown.empty())
            rankscopeVgpuRefuse(unknown.c_str(), "libcudnn.so.9");
    descriptor->isFinal = true;
    return kCudnnSuccess;
}

int cudnnBackendExecute(CudnnHandle* handle, Held* plan, Held* variants) {
    if (!handle || !plan || !variants || !plan->isFinal) return kCudnnBadParameter;
    const Descriptor config = plan->data->child(kPlanConfig);
    const Descriptor engine = config ? config->child(kConfigEngine) : nullptr;
    const Descriptor graph = engine ? engine->child(kEngineGraph) : nullptr;
    if (!graph) return kCudnnBadParameter;
    const GraphPrice price = priceOf(*graph, engine->number<int64_t>(kEngineIndex, kTensorCoreEngine));
    const cudaError_t result = launchPriced(price.kernel, price.cost, price.elements, handle->stream);
    return result == cudaSuccess ? kCudnnSuccess : kCudnnExecutionFailed;
}

}  // extern "C"
