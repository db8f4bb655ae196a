// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallelism (ZeRO-3): every rank holds a part of each layer; a layer is gathered before it is
// used, in forward and again in backward, and its gradients are summed into the parts. Hybrid (hsdp): the ranks of a
// node hold one copy among them, and the sums of each part are summed again over the nodes.
#include <algorithm>
#include <optional>
#include <string>

#include "reference/workloads/check.h"
#include "reference/workloads/workload.h"

namespace rankscope::reference {

namespace {

constexpr int kGatheredLayers = 3;  // in use, being released, being gathered
constexpr int kGradientLayers = 2;  // being computed, being reduced

/// One use of a layer: in the forward or the backward pass of a micro-step.
struct Use {
    int layer;
    bool forward;
    int micro;
};

class FsdpTraining {
  public:
    explicit FsdpTraining(Worker& worker)
        : m_worker(worker),
          m_scenario(worker.scenario()),
          m_shards(hybrid() ? worker.join(nodeRanks(m_scenario.cluster, worker.rank())) : worker.world()),
          m_replicas(hybrid() ? worker.join(sameLocalRanks(m_scenario.cluster, worker.rank())) : Group{}),
          m_transformer(m_scenario.model),
          m_layers(m_scenario.model.layers),
          m_ranks(m_shards.size),
          m_shard((m_transformer.parametersPerLayer() + m_ranks - 1) / m_ranks),
          m_overlap(m_scenario.parallel.overlap && !m_scenario.faults.noOverlap),
          m_prefetch(m_scenario.parallel.prefetch && !m_scenario.faults.noPrefetch && m_overlap) {
        planUses();
        allocateAll();
    }

    void runStep() {
        m_gathered = 0;
        std::optional<NvtxRange> phase;
        for (size_t i = 0; i < m_uses.size(); ++i) {
            if (i == 0 || m_uses[i].forward != m_uses[i - 1].forward) {
                phase.reset();
                phase.emplace(m_uses[i].forward ? "forward" : "backward");
            }
            gatherUntil(m_prefetch ? i + 2 : i + 1);
            use(i);
        }
        phase.reset();
        m_worker.computeAfter(m_shards);
        m_worker.computeAfter(m_replicas);
        optimize();
    }

    void initialise() {
        for (int layer = 0; layer < m_layers; ++layer)
            m_worker.launch(castKernel(), parameterTask(TaskOp::setParameter, layer, 0));
    }

  private:
    bool hybrid() const { return m_scenario.kind == Kind::hsdp; }
    int64_t whole() const { return m_shard * m_ranks; }
    int accumulate() const { return m_scenario.parallel.accumulate; }
    Dtype gradientType() const { return m_scenario.parallel.gradDtype; }
    /// Without no_sync every micro-step is reduced; with it gradients stay unsharded until the last one.
    bool keepsGradients() const { return m_scenario.parallel.noSync && accumulate() > 1; }
    bool reduces(int micro) const { return !keepsGradients() || micro + 1 == accumulate(); }
    LayerKernel castKernel() const { return Transformer::cast(m_shard, dtypeBytes(m_scenario.model.dtype)); }

    void planUses() {
        for (int micro = 0; micro < accumulate(); ++micro) {
            for (int layer = 0; layer < m_layers; ++layer) m_uses.push_back({layer, true, micro});
            for (int layer = m_layers; layer-- > 0;) m_uses.push_back({layer, false, micro});
        }
    }

    void allocateAll() {
        const int64_t parameterBytes = dtypeBytes(m_scenario.model.dtype);
        const int64_t gradientBytes = dtypeBytes(gradientType());
        const int gradientLayers = keepsGradients() ? m_layers : kGradientLayers;
        m_worker.planMemory(m_layers * m_shard * (parameterBytes + gradientBytes) +
                                kGatheredLayers * whole() * parameterBytes + gradientLayers * whole() * gradientBytes,
                            whole() * std::max(parameterBytes, gradientBytes));
        for (int layer = 0; layer < m_layers; ++layer) {
            m_parameterShards.push_back(m_worker.allocate(m_shard * parameterBytes));
            m_gradientShards.push_back(m_worker.allocate(m_shard * gradientBytes));
        }
        for (int i = 0; i < kGatheredLayers; ++i) {
            m_gatheredBuffers.push_back(m_worker.allocate(whole() * parameterBytes));
            m_released.push_back(m_worker.newEvent());
            m_gatherDone.push_back(m_worker.newEvent());
        }
        for (int i = 0; i < gradientLayers; ++i) {
            m_gradientBuffers.push_back(m_worker.allocate(whole() * gradientBytes));
            m_reduceDone.push_back(m_worker.newEvent());
        }
    }

    KernelTask parameterTask(TaskOp op, int layer, int step) const {
        const bool sharded = op == TaskOp::setParameter;
        KernelTask task = m_worker.task(op, m_scenario.model.dtype, sharded ? m_parameterShards[layer] : nullptr);
        task.first = task.dataOrigin = task.chunkOrigin = sharded ? static_cast<uint64_t>(m_shard * m_shards.rank) : 0;
        task.count = task.chunkLength = static_cast<uint64_t>(sharded ? m_shard : whole());
        task.end = task.first + task.count;
        task.layer = static_cast<uint32_t>(layer);
        task.step = static_cast<uint32_t>(step);
        return task;
    }

    KernelTask gradientTask(TaskOp op, const Use& use) const {
        const bool sharded = op == TaskOp::checkGradient;
        void* data = sharded ? m_gradientShards[use.layer] : gradientBuffer(use.layer);
        KernelTask task = m_worker.task(op, gradientType(), data);
        task.first = task.dataOrigin = sharded ? static_cast<uint64_t>(m_shard * m_shards.rank) : 0;
        task.count = static_cast<uint64_t>(sharded ? m_shard : whole());
        task.chunkLength = static_cast<uint64_t>(m_shard);  // every part's ends travel to its owner
        task.end = static_cast<uint64_t>(whole());
        task.micro = static_cast<uint32_t>(use.micro);
        task.microSteps = static_cast<uint32_t>(accumulate());
        task.microFirst = static_cast<uint32_t>(keepsGradients() ? 0 : use.micro);
        task.microLast = static_cast<uint32_t>(use.micro + 1);
        task.layer = static_cast<uint32_t>(use.layer);
        return task;
    }

    size_t gradientSlot(int layer) const { return static_cast<size_t>(layer) % m_gradientBuffers.size(); }
    void* gradientBuffer(int layer) const { return m_gradientBuffers[gradientSlot(layer)]; }

    /// Issues the all-gathers of the uses before `end`. A gather starts once its buffer's last user is done; without
    /// prefetch only once everything issued so far is.
    void gatherUntil(size_t end) {
        for (; m_gathered < std::min(end, m_uses.size()); ++m_gathered) {
            const size_t slot = m_gathered % kGatheredLayers;
            const int layer = m_uses[m_gathered].layer;
            const bool mustFollow = !m_prefetch || m_gathered == 0;  // the first one reads what the optimizer wrote
            if (mustFollow)
                m_worker.startAfterCompute(m_shards);
            else if (m_gathered >= kGatheredLayers)
                m_worker.startAfter(m_shards, m_released[slot]);
            m_worker.allGather(m_shards, m_parameterShards[layer], m_gatheredBuffers[slot], m_shard,
                               m_scenario.model.dtype);
            m_worker.record(m_shards, m_gatherDone[slot]);
        }
    }

    void use(size_t index) {
        const Use& use = m_uses[index];
        const size_t slot = index % kGatheredLayers;
        m_worker.computeAfter(m_gatherDone[slot]);
        KernelTask check = parameterTask(TaskOp::checkParameter, use.layer, m_worker.step());
        check.data = m_gatheredBuffers[slot];
        if (use.forward)
            forward(use, check);
        else
            backward(use, check);
        require(cudaEventRecord(m_released[slot], m_worker.compute()), "cudaEventRecord");
        if (!use.forward && reduces(use.micro)) reduce(use);
    }

    void forward(const Use& use, const KernelTask& check) {
        const NvtxRange range("layer " + std::to_string(use.layer));
        if (use.layer == 0) m_worker.launch(m_transformer.embedding());
        const std::vector<LayerKernel> kernels = m_transformer.forward();
        for (size_t i = 0; i < kernels.size(); ++i)
            i == 0 ? m_worker.launch(kernels[i], check) : m_worker.launch(kernels[i]);
        if (use.layer + 1 < m_layers) return;
        m_worker.launchLoss(m_transformer.loss());
        if (use.micro == 0) m_worker.failIfPlanned();
    }

    void backward(const Use& use, const KernelTask& check) {
        const NvtxRange range("layer " + std::to_string(use.layer));
        // The gradient buffer is free once its last reduce-scatter has read it.
        m_worker.computeAfter(m_reduceDone[gradientSlot(use.layer)]);
        const bool adds = keepsGradients() && use.micro > 0;
        const std::vector<LayerKernel> kernels = m_transformer.backward();
        for (size_t i = 0; i < kernels.size(); ++i) {
            if (i == 0)
                m_worker.launch(kernels[i], check);
            else if (i + 1 == kernels.size())
                m_worker.launch(kernels[i], gradientTask(adds ? TaskOp::addGradient : TaskOp::setGradient, use));
            else
                m_worker.launch(kernels[i]);
        }
    }

    void reduce(const Use& use) {
        m_worker.startAfterCompute(m_shards);
        // The part is free once the sum of an earlier micro-step over the nodes is done.
        if (hybrid() && use.micro > 0 && !keepsGradients()) m_worker.startAfter(m_shards, m_replicas);
        m_worker.reduceScatter(m_shards, gradientBuffer(use.layer), m_gradientShards[use.layer], m_shard,
                               gradientType());
        m_worker.record(m_shards, m_reduceDone[gradientSlot(use.layer)]);
        if (hybrid()) {
            m_worker.startAfter(m_replicas, m_shards);
            m_worker.allReduce(m_replicas, m_gradientShards[use.layer], m_shard, gradientType());
        }
        if (m_overlap) return;
        m_worker.computeAfter(m_shards);
        m_worker.computeAfter(m_replicas);
    }

    void optimize() {
        const NvtxRange range("optimizer");
        for (int layer = 0; layer < m_layers; ++layer) {
            const Use last{layer, false, accumulate() - 1};
            m_worker.launch(Transformer::adam(m_shard, dtypeBytes(gradientType())),
                            gradientTask(TaskOp::checkGradient, last));
            m_worker.launch(castKernel(), parameterTask(TaskOp::setParameter, layer, m_worker.step() + 1));
        }
    }

    Worker& m_worker;
    const Scenario& m_scenario;
    Group m_shards;
    Group m_replicas;  ///< ranks that hold the same part
    Transformer m_transformer;
    int m_layers;
    int m_ranks;
    int64_t m_shard;  ///< elements of a layer that each rank holds; the last rank's end is padding
    bool m_overlap;
    bool m_prefetch;
    std::vector<Use> m_uses;
    size_t m_gathered = 0;
    std::vector<void*> m_parameterShards, m_gradientShards, m_gatheredBuffers, m_gradientBuffers;
    std::vector<cudaEvent_t> m_released, m_gatherDone, m_reduceDone;
};

}  // namespace

int runFsdp(Worker& worker) {
    FsdpTraining training(worker);
    training.initialise();
    return worker.train([&] { training.runStep(); });
}

}  // namespace rankscope::reference
