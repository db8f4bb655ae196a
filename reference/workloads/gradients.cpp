// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/gradients.h"

#include <algorithm>

namespace rankscope::reference {

Gradients::Gradients(Worker& worker, const Group& replicas, std::vector<Bucket> buckets, int64_t elements)
    : m_worker(worker), m_replicas(replicas), m_buckets(std::move(buckets)), m_elements(elements) {
    m_data = m_worker.allocate(m_elements * dtypeBytes(dtype()));
}

void Gradients::beginBackward(int micro, int microSteps, bool synchronise, bool keep) {
    m_ready = 0;
    m_reduced = 0;
    m_micro = micro;
    m_microSteps = microSteps;
    m_synchronise = synchronise;
    m_keep = keep;
    if (!keep) m_microFirst = micro;
}

void Gradients::describe(KernelTask& task, int64_t begin, int64_t elements) const {
    // Either each tensor lies inside one bucket, or all buckets but the last are equal: one chunk length tells where probes are.
    const auto bucket = std::find_if(m_buckets.begin(), m_buckets.end(), [&](const Bucket& b) { return begin < b.end; });
    const bool inside = begin + elements <= bucket->end;
    const Bucket& reference = inside ? *bucket : m_buckets.front();
    task.first = static_cast<uint64_t>(begin);
    task.count = static_cast<uint64_t>(elements);
    task.chunkOrigin = static_cast<uint64_t>(reference.begin);
    task.chunkLength = static_cast<uint64_t>(reference.end - reference.begin);
    task.end = static_cast<uint64_t>(inside ? reference.end : m_elements);
    task.rank = static_cast<uint32_t>(m_replicas.rank);
    task.ranks = static_cast<uint32_t>(m_replicas.size);
    task.microSteps = static_cast<uint32_t>(m_microSteps);
}

KernelTask Gradients::nextTask(int64_t elements) const {
    const bool adds = m_keep && m_micro > m_microFirst;
    KernelTask task = m_worker.task(adds ? TaskOp::addGradient : TaskOp::setGradient, dtype(), m_data);
    describe(task, m_ready, elements);
    task.micro = static_cast<uint32_t>(m_micro);
    return task;
}

void Gradients::ready(int64_t elements, bool overlap) {
    m_ready += elements;
    if (!m_synchronise || !overlap) return;
    while (m_reduced < m_buckets.size() && m_buckets[m_reduced].end <= m_ready) reduceNext();
}

void Gradients::endBackward() {
    if (!m_synchronise) return;
    while (m_reduced < m_buckets.size()) reduceNext();
    m_worker.computeAfter(m_replicas);
}

void Gradients::reduceNext() {
    const Bucket& bucket = m_buckets[m_reduced++];
    m_worker.startAfterCompute(m_replicas);
    m_worker.allReduce(m_replicas, m_worker.at(m_data, bucket.begin * dtypeBytes(dtype())), bucket.end - bucket.begin, dtype());
}

void Gradients::optimize(const Transformer& transformer, int layers) {
    const NvtxRange range("optimizer");
    int64_t begin = 0;
    for (int layer = 0; layer < layers; ++layer) {
        for (const LayerKernel& kernel : transformer.backward()) {
            if (!kernel.parameters) continue;
            m_worker.launch(Transformer::adam(kernel.parameters, dtypeBytes(dtype())), checkTask(begin, kernel.parameters));
            begin += kernel.parameters;
        }
        m_worker.launch(Transformer::cast(transformer.parametersPerLayer(), dtypeBytes(m_worker.scenario().model.dtype)));
    }
}

KernelTask Gradients::checkTask(int64_t begin, int64_t elements) const {
    KernelTask task = m_worker.task(TaskOp::checkGradient, dtype(), m_data);
    describe(task, begin, elements);
    task.microFirst = static_cast<uint32_t>(m_microFirst);
    task.microLast = static_cast<uint32_t>(m_micro + 1);
    return task;
}

}  // namespace rankscope::reference
