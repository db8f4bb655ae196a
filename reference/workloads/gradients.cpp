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

int64_t GradientTensors::elements() const {
    return layers * std::accumulate(ofLayer.begin(), ofLayer.end(), int64_t{0});
}

std::vector<Bucket> planGradientBuckets(const Scenario& scenario, const GradientTensors& tensors, int shards) {
    const int64_t elementBytes = dtypeBytes(scenario.parallel.gradDtype);
    if (scenario.faults.singleBucket) return planSingleBucket(tensors.all());
    if (scenario.faults.smallBucketsKb) {
        const int64_t each = static_cast<int64_t>(*scenario.faults.smallBucketsKb * 1024) / elementBytes;
        return planEqualBuckets(tensors.all(), 1, std::max<int64_t>(shards, each / shards * shards));
    }
    return planBuckets(tensors.all(), elementBytes, static_cast<int64_t>(scenario.parallel.bucketMb * 1024 * 1024));
}

Gradients::Gradients(Worker& worker, const Group& replicas, const GradientTensors& tensors, GradientSharding sharding)
    : m_worker(worker),
      m_replicas(replicas),
      m_tensors(tensors),
      m_sharding(sharding),
      m_buckets(
          planGradientBuckets(worker.scenario(), tensors, sharding == GradientSharding::none ? 1 : replicas.size)) {
    store();
    m_data = m_worker.allocate(storedElements() * dtypeBytes(dtype()));
}

int64_t Gradients::bytes(const Scenario& scenario, const GradientTensors& tensors) {
    return tensors.elements() * dtypeBytes(scenario.parallel.gradDtype);
}

int64_t Gradients::largestBucketBytes(const Scenario& scenario, const GradientTensors& tensors) {
    int64_t largest = 0;
    for (const Bucket& bucket : planGradientBuckets(scenario, tensors))
        largest = std::max(largest, bucket.end - bucket.begin);
    return largest * dtypeBytes(scenario.parallel.gradDtype);
}

void Gradients::store() {
    const int64_t parts = m_sharding == GradientSharding::none ? 1 : m_replicas.size;
    int64_t begin = 0;
    for (const Bucket& bucket : m_buckets) {
        const int64_t part = (bucket.end - bucket.begin + parts - 1) / parts;
        m_stored.push_back({begin, begin + part * parts});
        for (int64_t i = 1; i <= parts; ++i) m_partEnds.push_back(static_cast<uint64_t>(begin + i * part));
        begin += part * parts;
    }
    std::vector<uint64_t> ends;
    for (const Bucket& bucket : m_stored) ends.push_back(static_cast<uint64_t>(bucket.end));
    if (m_sharding == GradientSharding::gradients) ends = m_partEnds;
    m_chunks = ends.size();
    m_chunkEnds = m_worker.allocateTable(m_chunks);
    std::copy(ends.begin(), ends.end(), m_chunkEnds);
}

size_t Gradients::bucketOf(int64_t element) const {
    const auto bucket =
        std::find_if(m_buckets.begin(), m_buckets.end(), [&](const Bucket& b) { return element < b.end; });
    return static_cast<size_t>(bucket - m_buckets.begin());
}

int64_t Gradients::storedAt(int64_t element) const {
    const size_t bucket = bucketOf(element);
    return m_stored[bucket].begin + element - m_buckets[bucket].begin;
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

void Gradients::describe(KernelTask& task, int64_t storedBegin, int64_t elements) const {
    task.first = static_cast<uint64_t>(storedBegin);
    task.count = static_cast<uint64_t>(std::max<int64_t>(0, elements));
    task.end = static_cast<uint64_t>(storedElements());
    task.chunkEnds = m_chunkEnds;
    task.chunks = m_chunks;
    task.rank = static_cast<uint32_t>(m_replicas.rank);
    task.ranks = static_cast<uint32_t>(m_replicas.size);
    task.microSteps = static_cast<uint32_t>(m_microSteps);
    task.layer = m_tensors.salt;
}

KernelTask Gradients::nextTask(int64_t elements) const {
    const bool adds = m_keep && m_micro > m_microFirst;
    KernelTask task = m_worker.task(adds ? TaskOp::addGradient : TaskOp::setGradient, dtype(), m_data);
    describe(task, storedAt(m_ready), elements);
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
    const size_t bucket = m_reduced++;
    const int64_t begin = m_stored[bucket].begin;
    void* data = m_worker.at(m_data, begin * dtypeBytes(dtype()));
    m_worker.startAfterCompute(m_replicas);
    if (m_sharding == GradientSharding::gradients) {
        const int64_t part = partLength(bucket);
        m_worker.reduceScatter(m_replicas, data,
                               m_worker.at(m_data, (begin + part * m_replicas.rank) * dtypeBytes(dtype())), part,
                               dtype());
    } else {
        m_worker.allReduce(m_replicas, data, m_stored[bucket].end - begin, dtype());
    }
}

void Gradients::optimize() {
    int64_t begin = 0;
    for (int layer = 0; layer < m_tensors.layers; ++layer) {
        const int64_t layerBegin = begin;
        for (const int64_t elements : m_tensors.ofLayer) {
            m_worker.launch(Transformer::adam(elements, dtypeBytes(dtype())), checkTask(storedAt(begin), elements));
            begin += elements;
        }
        m_worker.launch(Transformer::cast(begin - layerBegin, dtypeBytes(m_worker.scenario().model.dtype)));
    }
}

void Gradients::optimizePart(size_t bucket) {
    const int64_t part = partLength(bucket);
    const int64_t begin = m_stored[bucket].begin + part * m_replicas.rank;
    const int64_t end =
        m_stored[bucket].begin + m_buckets[bucket].end - m_buckets[bucket].begin;  // padding has no sums
    m_worker.launch(Transformer::adam(part, dtypeBytes(dtype())), checkTask(begin, std::min(part, end - begin)));
}

KernelTask Gradients::checkTask(int64_t storedBegin, int64_t elements) const {
    KernelTask task = m_worker.task(TaskOp::checkGradient, dtype(), m_data);
    describe(task, storedBegin, elements);
    task.microFirst = static_cast<uint32_t>(m_microFirst);
    task.microLast = static_cast<uint32_t>(m_micro + 1);
    return task;
}

}  // namespace rankscope::reference
