// SPDX-License-Identifier: Apache-2.0
// Work and parameters of one transformer layer: the kernels it launches with their floating-point operations and bytes.
// Counts follow Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
// (2021), section 5.1: a matrix product of m x k by k x n costs 2mkn, attention 4 b s^2 h forward; backward costs twice
// the forward.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/workloads/kernels.h"
#include "reference/workloads/scenario.h"

namespace rankscope::reference {

struct LayerKernel {
    Kernel kernel;
    KernelCost cost;
    int64_t blocks;
    int64_t parameters;  ///< elements of the kernel's weights, whose gradient it finishes in a backward pass
};

/// What one rank holds of each layer, as Megatron-LM cuts it: attention heads and the inner dimension of the MLP over
/// `tensor` ranks; with `sequence` norms work on their part of the sequence. With experts the MLP is that of
/// `localExperts` of them, for the tokens they get.
struct LayerShare {
    int tensor = 1;
    bool sequence = false;
    int experts = 0;  ///< of the layer
    int localExperts = 0;
    int64_t expertTokens = 0;
};

class Transformer {
  public:
    explicit Transformer(const Model& model, const LayerShare& share = {}) : m_model(model), m_share(share) {}

    std::vector<LayerKernel> forward() const;   ///< of one dense layer, in launch order
    std::vector<LayerKernel> backward() const;  ///< of one dense layer, in launch order

    // The kernels of a layer. `times`: 1 forward, 2 backward, 1 for the gradient of either the input or the weights.
    LayerKernel norm(Kernel kernel, double times) const;
    LayerKernel qkv(Kernel kernel, double times) const;
    LayerKernel attention(Kernel kernel, double times) const;
    LayerKernel projection(Kernel kernel, double times) const;
    LayerKernel mlpUp(Kernel kernel, double times) const;
    LayerKernel mlpDown(Kernel kernel, double times) const;
    LayerKernel router(Kernel kernel, double times) const;
    LayerKernel permute(Kernel kernel) const;

    /// Of a dense layer that is not cut.
    int64_t parametersPerLayer() const { return 12 * m_model.hidden * m_model.hidden + 13 * m_model.hidden; }
    int64_t activationElements() const { return tokens() * m_model.hidden; }
    int64_t tokens() const { return m_model.microBatch * m_model.seq; }

    LayerKernel embedding() const;
    LayerKernel loss() const;
    /// Adam in mixed precision: 16-bit or fp32 gradient read, three fp32 states read and written, per element.
    static LayerKernel adam(int64_t elements, int64_t gradientBytes);
    /// fp32 master weights rounded to the compute type.
    static LayerKernel cast(int64_t elements, int64_t parameterBytes);
    /// A gradient added to another of the same type.
    static LayerKernel accumulate(int64_t elements, int64_t gradientBytes);

  private:
    LayerKernel gemm(Kernel kernel, int64_t rows, int64_t inputs, int64_t outputs, double times, int64_t weights) const;
    LayerKernel mlp(Kernel kernel, int64_t inputs, int64_t outputs, double times, int64_t biases) const;

    Model m_model;
    LayerShare m_share;
};

}  // namespace rankscope::reference
