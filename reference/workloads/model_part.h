// SPDX-License-Identifier: Apache-2.0
// The layers that one rank of a Megatron-LM job holds a part of: their kernels, and the communication inside a layer.
// Attention heads and the inner dimension of the MLP are cut over the tensor group, which sums what its ranks computed
// (Shoeybi et al., "Megatron-LM", 2019), or with sequence parallelism gathers its parts and scatters the sums
// (Korthikanti et al., "Reducing Activation Recomputation", 2022). Experts are spread over the expert group: tokens
// travel to them and back.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/workloads/gradients.h"
#include "reference/workloads/worker.h"

namespace rankscope::reference {

class ModelPart {
  public:
    ModelPart(Worker& worker, const Layout& layout);

    const Transformer& transformer() const { return m_transformer; }
    /// Elements of an activation that this rank keeps between layers, and sends to the next stage.
    int64_t activationElements() const {
        return m_sequence ? m_transformer.activationElements() / m_tensor.size : m_transformer.activationElements();
    }
    /// Gradients of a layer, in the order in which backward finishes them.
    std::vector<int64_t> denseTensors() const;
    std::vector<int64_t> expertTensors() const;
    int64_t workBytes() const;
    void allocate();

    // One layer, in place on an activation or the gradient of one. `micro` numbers the micro-batch among all replicas'.
    void forward(int layer, void* activation, uint32_t micro);
    /// Where `dense` and `experts` are given the layer's gradients are finished by this pass.
    void backward(int layer, void* gradient, uint32_t micro, Gradients* dense, Gradients* experts);

    /// A task on an activation between layers.
    KernelTask task(TaskOp op, void* data, uint32_t micro) const;
    /// Halves of layers: attention and MLP each map the activation once.
    uint32_t maps() const { return static_cast<uint32_t>(2 * m_worker.scenario().model.layers); }

  private:
    bool moe() const { return m_experts > 0; }
    bool tokensTravel() const { return moe() && !m_expert.alone(); }
    void* expertTokens(void* whole) const { return tokensTravel() ? m_expertTokens : whole; }
    Dtype dtype() const { return m_worker.scenario().model.dtype; }
    LayerShare share() const;
    KernelTask mapTask(TaskOp op, void* data, int64_t elements, int map, uint32_t micro) const;
    /// The whole activation, before a layer's cut part.
    void* enter(void* activation);
    void startLeave(void* activation, void* whole);
    void finishLeave();
    void dispatch(void* whole);
    void combine(void* whole);
    void exchangeTokens(void* whole, bool toExperts);
    void attentionForward(int layer, void* activation, uint32_t micro);
    void mlpForward(int layer, void* activation, uint32_t micro);
    void mlpBackward(int layer, void* gradient, uint32_t micro, Gradients* dense, Gradients* experts);
    void attentionBackward(int layer, void* gradient, uint32_t micro, Gradients* dense);
    void launchFinishing(const LayerKernel& kernel, Gradients* gradients);

    Worker& m_worker;
    Group m_tensor;
    Group m_expert;
    bool m_sequence;
    bool m_overlap;
    int m_experts;
    std::vector<int64_t> m_tokensPerRank;  ///< of one rank's tokens, to each rank of the expert group
    Transformer m_transformer;
    void* m_whole = nullptr;         ///< with sequence parallelism: an activation of all tokens
    void* m_expertTokens = nullptr;  ///< what this rank's experts got, one rank's after the other's
    uint64_t* m_tokenEnds =
        nullptr;  ///< in elements of an activation: where its probes are if tokens travel and nothing else does
};

}  // namespace rankscope::reference
