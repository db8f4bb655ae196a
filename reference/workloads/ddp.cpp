// SPDX-License-Identifier: Apache-2.0
// Data parallelism: every rank holds the whole model; gradients are summed in buckets while backward still runs. With
// ZeRO-1 and ZeRO-2 every rank updates a part of the parameters and gathers the rest.
#include <optional>
#include <string>

#include "reference/workloads/gradients.h"
#include "reference/workloads/sharded_parameters.h"
#include "reference/workloads/workload.h"

namespace rankscope::reference {

namespace {

GradientTensors gradientTensors(const Model& model) {
    GradientTensors tensors{.layers = model.layers};
    for (const LayerKernel& kernel : Transformer(model).backward())
        if (kernel.parameters) tensors.ofLayer.push_back(kernel.parameters);
    return tensors;
}

GradientSharding shardingOf(Kind kind) {
    return kind == Kind::zero1   ? GradientSharding::optimizer
           : kind == Kind::zero2 ? GradientSharding::gradients
                                 : GradientSharding::none;
}

class DdpTraining {
  public:
    explicit DdpTraining(Worker& worker)
        : m_worker(worker),
          m_scenario(worker.scenario()),
          m_transformer(m_scenario.model),
          m_overlap(m_scenario.parallel.overlap && !m_scenario.faults.noOverlap),
          m_sharding(shardingOf(m_scenario.kind)),
          m_gradients(makeGradients()) {
        if (m_sharding == GradientSharding::none) return;
        m_parameters.emplace(worker, worker.world(), m_gradients, m_transformer.parametersPerLayer(),
                             m_scenario.model.layers);
        m_parameters->initialise();
    }

    void runStep() {
        const int accumulate = m_scenario.parallel.accumulate;
        for (int micro = 0; micro < accumulate; ++micro) {
            forward();
            if (micro == 0) m_worker.failIfPlanned();
            backward(micro, accumulate);
        }
        const NvtxRange range("optimizer");
        m_parameters ? m_parameters->update() : m_gradients.optimize();
    }

  private:
    Gradients makeGradients() {
        const GradientTensors tensors = gradientTensors(m_scenario.model);
        const int64_t parameterBytes =
            m_sharding == GradientSharding::none ? 0 : tensors.elements() * dtypeBytes(m_scenario.model.dtype);
        m_worker.planMemory(Gradients::bytes(m_scenario, tensors) + parameterBytes,
                            Gradients::largestBucketBytes(m_scenario, tensors));
        return Gradients(m_worker, m_worker.world(), tensors, m_sharding);
    }

    void forward() {
        const NvtxRange range("forward");
        m_worker.launch(m_transformer.embedding());
        for (int layer = 0; layer < m_scenario.model.layers; ++layer) {
            const NvtxRange layerRange("layer " + std::to_string(layer));
            const std::vector<LayerKernel> kernels = m_transformer.forward();
            for (const LayerKernel& kernel : kernels)
                m_parameters&&& kernel == &kernels.front() ? m_worker.launch(kernel, m_parameters->use(layer))
                                                           : m_worker.launch(kernel);
        }
        m_worker.launchLoss(m_transformer.loss());
    }

    void backward(int micro, int accumulate) {
        const NvtxRange range("backward");
        const bool noSync = m_scenario.parallel.noSync;
        m_gradients.beginBackward(micro, accumulate, !noSync || micro + 1 == accumulate, noSync);
        for (int layer = m_scenario.model.layers; layer-- > 0;) {
            const NvtxRange layerRange("layer " + std::to_string(layer));
            for (const LayerKernel& kernel : m_transformer.backward()) {
                if (!kernel.parameters) {
                    m_worker.launch(kernel);
                    continue;
                }
                m_worker.launch(kernel, m_gradients.nextTask(kernel.parameters));
                m_gradients.ready(kernel.parameters, m_overlap);
            }
        }
        m_gradients.endBackward();
    }

    Worker& m_worker;
    const Scenario& m_scenario;
    Transformer m_transformer;
    bool m_overlap;
    GradientSharding m_sharding;
    Gradients m_gradients;
    std::optional<ShardedParameters> m_parameters;
};

}  // namespace

int runDdp(Worker& worker) {
    DdpTraining training(worker);
    return worker.train([&] { training.runStep(); });
}

}  // namespace rankscope::reference
