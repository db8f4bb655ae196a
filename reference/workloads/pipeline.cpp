// SPDX-License-Identifier: Apache-2.0
// Pipeline parallelism: every stage holds some layers; activations go forward and their gradients backward between neighbours by send and
// receive. With dp > 1 each stage is replicated, and the replicas sum their gradients at the end of the step. Ranks are ordered as in
// Megatron-LM: data-parallel neighbours first, then stages.
#include <algorithm>
#include <optional>
#include <string>

#include "reference/workloads/gradients.h"
#include "reference/workloads/schedule.h"
#include "reference/workloads/workload.h"

namespace rankscope::reference {

namespace {

class PipelineTraining {
  public:
    explicit PipelineTraining(Worker& worker)
        : m_worker(worker),
          m_scenario(worker.scenario()),
          m_transformer(m_scenario.model),
          m_replicas(worker.join(Layout(m_scenario.parallel, worker.rank()).data())),
          m_pipeline(worker.join(Layout(m_scenario.parallel, worker.rank()).pipeline())),
          m_stages(m_pipeline.size),
          m_stage(m_pipeline.rank),
          m_layersPerStage(m_scenario.model.layers / m_stages),
          m_actions(planPipeline(m_scenario.parallel.schedule, m_stages, m_stage, m_scenario.parallel.microBatches)) {
        allocateAll();
    }

    void runStep() {
        for (const PipelineAction& action : m_actions) {
            switch (action.type) {
                case PipelineAction::Type::forward: forward(action.micro); break;
                case PipelineAction::Type::backward: backward(action.micro); break;
                case PipelineAction::Type::transfer: transfer(action.transfer); break;
            }
        }
        optimize();
    }

  private:
    bool firstStage() const { return m_stage == 0; }
    bool lastStage() const { return m_stage + 1 == m_stages; }
    int microBatches() const { return m_scenario.parallel.microBatches; }
    Dtype dtype() const { return m_scenario.model.dtype; }

    void allocateAll() {
        const int64_t elements = m_transformer.parametersPerLayer() * m_layersPerStage;
        std::vector<int64_t> tensors;
        for (int layer = 0; layer < m_layersPerStage; ++layer)
            for (const LayerKernel& kernel : m_transformer.backward())
                if (kernel.parameters) tensors.push_back(kernel.parameters);
        const int64_t gradientBytes = dtypeBytes(m_scenario.parallel.gradDtype);
        std::vector<Bucket> buckets = planBuckets(tensors, gradientBytes, static_cast<int64_t>(m_scenario.parallel.bucketMb * 1024 * 1024));
        int64_t largest = m_transformer.activationElements() * dtypeBytes(dtype());
        for (const Bucket& bucket : buckets) largest = std::max(largest, (bucket.end - bucket.begin) * gradientBytes);
        const int64_t activationBytes = m_transformer.activationElements() * dtypeBytes(dtype());
        m_worker.planMemory(elements * gradientBytes + 2 * microBatches() * activationBytes, largest);
        m_gradients.emplace(m_worker, m_replicas, std::move(buckets), elements);
        for (int micro = 0; micro < microBatches(); ++micro) {
            m_activations.push_back(m_worker.allocate(activationBytes));
            m_activationGradients.push_back(m_worker.allocate(activationBytes));
        }
    }

    KernelTask activationTask(TaskOp op, void* data, int micro, int layer) const {
        KernelTask task = m_worker.task(op, dtype(), data);
        task.count = task.chunkLength = task.end = static_cast<uint64_t>(m_transformer.activationElements());
        // Replicas work on different data.
        task.micro = static_cast<uint32_t>(micro * m_replicas.size + m_replicas.rank);
        task.layer = static_cast<uint32_t>(layer);
        return task;
    }

    void forward(int micro) {
        const NvtxRange range("forward");
        void* activation = m_activations[micro];
        if (firstStage()) m_worker.launch(m_transformer.embedding(), activationTask(TaskOp::startActivation, activation, micro, 0));
        for (int i = 0; i < m_layersPerStage; ++i) {
            const int layer = m_stage * m_layersPerStage + i;
            const NvtxRange layerRange("layer " + std::to_string(layer));
            const std::vector<LayerKernel> kernels = m_transformer.forward();
            for (const LayerKernel& kernel : kernels)
                &kernel == &kernels.back() ? m_worker.launch(kernel, activationTask(TaskOp::forwardLayer, activation, micro, layer))
                                           : m_worker.launch(kernel);
        }
        if (!lastStage()) return;
        m_worker.launchLoss(m_transformer.loss());
        // The gradient of the loss; its kernel compares the output of the pipeline with that of one rank.
        m_worker.launch(m_transformer.loss(), activationTask(TaskOp::checkActivation, activation, micro, 0));
    }

    void backward(int micro) {
        const NvtxRange range("backward");
        void* gradient = m_activationGradients[micro];
        if (lastStage()) m_worker.launch(m_transformer.loss(), activationTask(TaskOp::startBackward, gradient, micro, 0));
        // The micro-batches' gradients add up; the last one stands for all of them in the arithmetic.
        const bool last = micro + 1 == microBatches();
        if (last) m_gradients->beginBackward(0, 1, true, false);
        for (int i = m_layersPerStage; i-- > 0;) {
            const int layer = m_stage * m_layersPerStage + i;
            const NvtxRange layerRange("layer " + std::to_string(layer));
            const std::vector<LayerKernel> kernels = m_transformer.backward();
            for (const LayerKernel& kernel : kernels) {
                if (kernel.kernel == Kernel::attentionBackward) {
                    m_worker.launch(kernel, activationTask(TaskOp::backwardLayer, gradient, micro, layer));
                } else if (last && kernel.parameters) {
                    m_worker.launch(kernel, m_gradients->nextTask(kernel.parameters));
                    m_gradients->ready(kernel.parameters, false);
                } else {
                    m_worker.launch(kernel);
                }
            }
        }
        if (firstStage()) m_worker.launch(m_transformer.embedding(), activationTask(TaskOp::checkBackward, gradient, micro, 0));
    }

    void transfer(const Transfer& transfer) {
        std::vector<Message> messages;
        const auto send = [&](const std::vector<void*>& buffers, int micro, int peer) {
            messages.push_back({Message::Type::send, buffers[micro], m_transformer.activationElements(), peer});
        };
        const auto receive = [&](const std::vector<void*>& buffers, int micro, int peer) {
            messages.push_back({Message::Type::receive, buffers[micro], m_transformer.activationElements(), peer});
        };
        if (transfer.sendGradient) send(m_activationGradients, *transfer.sendGradient, m_stage - 1);
        if (transfer.receiveActivation) receive(m_activations, *transfer.receiveActivation, m_stage - 1);
        if (transfer.sendActivation) send(m_activations, *transfer.sendActivation, m_stage + 1);
        if (transfer.receiveGradient) receive(m_activationGradients, *transfer.receiveGradient, m_stage + 1);
        m_worker.startAfterCompute(m_pipeline);
        m_worker.exchange(m_pipeline, messages, dtype());
        if (transfer.receives()) m_worker.computeAfter(m_pipeline);
    }

    void optimize() {
        m_worker.dieIfPlanned();
        m_gradients->endBackward();
        m_gradients->optimize(m_transformer, m_layersPerStage);
        // The step ends only when this stage's last send has left.
        m_worker.computeAfter(m_pipeline);
    }

    Worker& m_worker;
    const Scenario& m_scenario;
    Transformer m_transformer;
    Group m_replicas;
    Group m_pipeline;
    int m_stages;
    int m_stage;
    int m_layersPerStage;
    std::vector<PipelineAction> m_actions;
    std::optional<Gradients> m_gradients;
    std::vector<void*> m_activations, m_activationGradients;
};

}  // namespace

int runPipeline(Worker& worker) {
    PipelineTraining training(worker);
    for (int step = 0; step < worker.scenario().steps; ++step) {
        const NvtxRange range("ProfilerStep#" + std::to_string(step));
        worker.beginStep(step);
        training.runStep();
        worker.endStep();
    }
    return worker.finish();
}

}  // namespace rankscope::reference
