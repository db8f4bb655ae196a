// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/gradients.h"

#include <algorithm>
#include <numeric>

namespace rankscope::reference {

std::vector<int64_t> GradientTensors::all() const {
    std::vector<int64_t> tensors;
    for (int layer = 0; layer < layers; ++layer) tensors.insert(tensors.end(), ofLayer.begin(), ofLayer.end());
    return tensors;
}

int64_t GradientTensors::elements() const { return layers * std::accumulate(ofLayer.begin(), ofLayer.end(), int64_t{0}); }

std::vector<Bucket> planGradientBuckets(const Scenario& scenario, const GradientTensors& tensors) {
    const int64_t elementBytes = dtypeBytes(scenario.parallel.gradDtype);
    if (scenario.faults.singleBucket) return planSingleBucket(tensors.all());
    if (scenario.faults.smallBucketsKb)
        return planEqualBuckets(tensors.all(), elementBytes, static_cast<int64_t>(*scenario.faults.smallBucketsKb * 1024));
    return planBuckets(tensors.all(), elementBytes, static_cast<int64_t>(scenario.parallel.bucketMb * 1024 * 1024));
}

Gradients::Gradients(Worker& worker, const Group& replicas, const GradientTensors& tensors)
    : m_worker(worker), m_replicas(replicas), m_tensors(tensors), m_buckets(planGradientBuckets(worker.scenario(), tensors)), m_elements(tensors.elements()) {
    m_data = m_worker.allocate(m_elements * dtypeBytes(dtype()));
}

int64_t Gradients::bytes(const Scenario& scenario, const GradientTensors& tensors) {
    return tensors.elements() * dtypeBytes(scenario.parallel.gradDtype);
}

int64_t Gradients::largestBucketBytes(const Scenario& scenario, const GradientTensors& tensors) {
    int64_t largest = 0;
    for (const Bucket& bucket : planGradientBuckets(scenario, tensors)) largest = std::max(largest, bucket.end - bucket.begin);
    return largest * dtypeBytes(scenario.parallel.gradDtype);
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
    task.layer = m_tensors.salt;
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

void Gradients::optimize() {
    int64_t begin = 0;
    for (int layer = 0; layer < m_tensors.layers; ++layer) {
        const int64_t layerBegin = begin;
        for (const int64_t elements : m_tensors.ofLayer) {
            m_worker.launch(Transformer::adam(elements, dtypeBytes(dtype())), checkTask(begin, elements));
            begin += elements;
        }
        m_worker.launch(Transformer::cast(begin - layerBegin, dtypeBytes(m_worker.scenario().model.dtype)));
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
