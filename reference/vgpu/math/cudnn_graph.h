// SPDX-License-Identifier: Apache-2.0
// What a graph of cuDNN's operations costs and what its kernel is called.
#pragma once

#include <string>

#include "reference/vgpu/math/cudnn_descriptor.h"
#include "reference/vgpu/math/matrix_product.h"

namespace rankscope::vgpu::math {

/// Engines by their global index: the one that cuts 32-bit floats to TF32 goes first.
enum Engine : int64_t { kTensorCoreEngine = 0, kFullPrecisionEngine = 1 };

struct GraphPrice {
    std::string kernel;
    Cost cost{0, 0};
    double elements = 0;  ///< of the largest tensor that is written or read
};

/// The name of an operation that is not modelled, for a refusal; empty if all are.
std::string unknownOperation(const DescriptorData& graph);
/// A convolution, product or attention in the graph, or what its tensors in memory take; one kernel for all.
GraphPrice priceOf(const DescriptorData& graph, int64_t engine);
/// True if 32-bit floats are multiplied, so that an engine without TF32 differs.
bool multipliesFloats(const DescriptorData& graph);

}  // namespace rankscope::vgpu::math
