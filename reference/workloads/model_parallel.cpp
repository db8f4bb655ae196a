// SPDX-License-Identifier: Apache-2.0
// Jobs that cut the model, as Megatron-LM does: layers over tensor-parallel ranks, blocks of layers over pipeline
// stages, experts over replicas. Activations and their gradients travel between stages by send and receive; replicas
// sum their gradients behind the last backward pass of a step, or behind each without no_sync.
#include <algorithm>
#include <deque>
#include <string>

#include "reference/workloads/gradients.h"
#include "reference/workloads/model_part.h"
#include "reference/workloads/schedule.h"
#include "reference/workloads/workload.h"

namespace rankscope::reference {

namespace {

class ModelParallelTraining {
  public:
    explicit ModelParallelTraining(Worker& worker)
        : m_worker(worker),
          m_scenario(worker.scenario()),
          m_layout(m_scenario.parallel, worker.rank()),
          m_replicas(worker.join(m_layout.data())),
          m_pipeline(worker.join(m_layout.pipeline())),
          m_part(worker, m_layout),
          m_chunks(m_scenario.parallel.virtualStages),
          m_layersPerChunk(m_scenario.model.layers / (m_pipeline.size * m_chunks)),
          m_microBatches(m_pipeline.size > 1 ? m_scenario.parallel.microBatches : m_scenario.parallel.accumulate),
          m_actions(
              planPipeline(m_scenario.parallel.schedule, m_pipeline.size, m_pipeline.rank, m_microBatches, m_chunks)) {
        if (m_scenario.model.experts) m_expertReplicas = worker.join(m_layout.expertData());
        allocateAll();
    }

    void runStep() {
        for (const PipelineAction& action : m_actions) {
            switch (action.type) {
                case PipelineAction::Type::forward:
                    forward(action.chunk, action.micro);
                    break;
                case PipelineAction::Type::backward:
                    backward(action.chunk, action.micro);
                    break;
                case PipelineAction::Type::transfer:
                    transfer(action);
                    break;
            }
        }
        optimize();
    }

  private:
    int part(int chunk) const { return chunk * m_pipeline.size + m_pipeline.rank; }
    bool beginsModel(int chunk) const { return part(chunk) == 0; }
    bool endsModel(int chunk) const { return part(chunk) + 1 == m_pipeline.size * m_chunks; }
    Dtype dtype() const { return m_scenario.model.dtype; }
    /// Replicas work on different data.
    uint32_t dataOf(int micro) const { return static_cast<uint32_t>(micro * m_replicas.size + m_replicas.rank); }
    void* activation(int chunk, int micro) const {
        return m_activations[static_cast<size_t>(chunk * m_microBatches + micro)];
    }
    void* gradient(int chunk, int micro) const {
        return m_activationGradients[static_cast<size_t>(chunk * m_microBatches + micro)];
    }

    /// What different ranks hold differs; what the ranks of a data-parallel group hold does not.
    uint32_t saltOf(int chunk, int expertRank) const {
        return static_cast<uint32_t>((part(chunk) * m_scenario.parallel.tp + m_layout.tensorRank()) *
                                         (m_scenario.parallel.ep + 1) +
                                     expertRank + 1);
    }
    GradientTensors denseTensors(int chunk) const {
        return {m_part.denseTensors(), m_layersPerChunk, saltOf(chunk, -1)};
    }
    GradientTensors expertTensors(int chunk) const {
        return {m_part.expertTensors(), m_layersPerChunk, saltOf(chunk, m_layout.expert().rank)};
    }

    void allocateAll() {
        const int64_t activationBytes = m_part.activationElements() * dtypeBytes(dtype());
        int64_t total = m_part.workBytes() + 2 * m_chunks * m_microBatches * activationBytes;
        int64_t largest = std::max(m_part.workBytes(), activationBytes);
        for (const GradientTensors& tensors : {denseTensors(0), expertTensors(0)}) {
            total += m_chunks * Gradients::bytes(m_scenario, tensors);
            largest = std::max(largest, Gradients::largestBucketBytes(m_scenario, tensors));
        }
        m_worker.planMemory(total, largest);
        m_part.allocate();
        for (int chunk = 0; chunk < m_chunks; ++chunk) {
            m_dense.emplace_back(m_worker, m_replicas, denseTensors(chunk));
            if (m_scenario.model.experts) m_experts.emplace_back(m_worker, m_expertReplicas, expertTensors(chunk));
        }
        for (int i = 0; i < m_chunks * m_microBatches; ++i) {
            m_activations.push_back(m_worker.allocate(activationBytes));
            m_activationGradients.push_back(m_worker.allocate(activationBytes));
        }
    }

    void forward(int chunk, int micro) {
        const NvtxRange range("forward");
        const uint32_t data = dataOf(micro);
        if (beginsModel(chunk))
            m_worker.launch(m_part.transformer().embedding(),
                            m_part.task(TaskOp::startActivation, activation(chunk, micro), data));
        for (int i = 0; i < m_layersPerChunk; ++i) {
            const int layer = part(chunk) * m_layersPerChunk + i;
            const NvtxRange layerRange("layer " + std::to_string(layer));
            m_part.forward(layer, activation(chunk, micro), data);
        }
        if (endsModel(chunk)) {
            m_worker.launchLoss(m_part.transformer().loss());
            // The gradient of the loss; its kernel compares the output of the model with that of one rank.
            m_worker.launch(m_part.transformer().loss(),
                            m_part.task(TaskOp::checkActivation, activation(chunk, micro), data));
        }
        if (chunk == 0 && micro == 0) m_worker.failIfPlanned();
    }

    void backward(int chunk, int micro) {
        const NvtxRange range("backward");
        const uint32_t data = dataOf(micro);
        if (endsModel(chunk))
            m_worker.launch(m_part.transformer().loss(),
                            m_part.task(TaskOp::startBackward, gradient(chunk, micro), data));
        const bool finishes = beginGradients(chunk, micro);
        Gradients* dense = finishes ? &m_dense[static_cast<size_t>(chunk)] : nullptr;
        Gradients* experts = finishes && !m_experts.empty() ? &m_experts[static_cast<size_t>(chunk)] : nullptr;
        for (int i = m_layersPerChunk; i-- > 0;) {
            const int layer = part(chunk) * m_layersPerChunk + i;
            const NvtxRange layerRange("layer " + std::to_string(layer));
            m_part.backward(layer, gradient(chunk, micro), data, dense, experts);
        }
        if (beginsModel(chunk))
            m_worker.launch(m_part.transformer().embedding(),
                            m_part.task(TaskOp::checkBackward, gradient(chunk, micro), data));
        if (finishes && reduces(micro) && micro + 1 < m_microBatches) endGradients(chunk);
    }

    bool reduces(int micro) const { return !m_scenario.parallel.noSync || micro + 1 == m_microBatches; }

    /// In a pipeline the last micro-batch stands for all of them in the gradients' arithmetic.
    bool beginGradients(int chunk, int micro) {
        const bool pipelined = m_pipeline.size > 1;
        if (pipelined && !reduces(micro)) return false;
        const bool keeps = m_scenario.parallel.noSync && !pipelined;
        for (auto* gradients : {&m_dense, &m_experts})
            if (!gradients->empty())
                (*gradients)[static_cast<size_t>(chunk)].beginBackward(
                    pipelined ? 0 : micro, pipelined ? 1 : m_microBatches, reduces(micro), keeps);
        return true;
    }

    void endGradients(int chunk) {
        m_dense[static_cast<size_t>(chunk)].endBackward();
        if (!m_experts.empty()) m_experts[static_cast<size_t>(chunk)].endBackward();
    }

    void transfer(const PipelineAction& action) {
        std::vector<Message> messages;
        for (const PipelineMessage& message : action.messages) {
            const bool forward = message.what == PipelineMessage::What::activation;
            messages.push_back(
                {message.send ? Message::Type::send : Message::Type::receive,
                 forward ? activation(message.chunk, message.micro) : gradient(message.chunk, message.micro),
                 m_part.activationElements(), message.peer});
        }
        m_worker.startAfterCompute(m_pipeline);
        m_worker.exchange(m_pipeline, messages, dtype());
        if (action.receives()) m_worker.computeAfter(m_pipeline);
    }

    void optimize() {
        for (int chunk = m_chunks; chunk-- > 0;) endGradients(chunk);
        const NvtxRange range("optimizer");
        for (auto* gradients : {&m_dense, &m_experts})
            for (Gradients& chunk : *gradients) chunk.optimize();
        // The step ends only when this stage's last send has left.
        m_worker.computeAfter(m_pipeline);
    }

    Worker& m_worker;
    const Scenario& m_scenario;
    Layout m_layout;
    Group m_replicas;
    Group m_expertReplicas;
    Group m_pipeline;
    ModelPart m_part;
    int m_chunks;
    int m_layersPerChunk;
    int m_microBatches;
    std::vector<PipelineAction> m_actions;
    std::deque<Gradients> m_dense, m_experts;  ///< one of each per chunk
    std::vector<void*> m_activations, m_activationGradients;
};

}  // namespace

int runModelParallel(Worker& worker) {
    ModelParallelTraining training(worker);
    return worker.train([&] { training.runStep(); });
}

}  // namespace rankscope::reference
