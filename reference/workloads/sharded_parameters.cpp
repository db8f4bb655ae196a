// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/sharded_parameters.h"

#include <algorithm>

#include "reference/workloads/check.h"

namespace rankscope::reference {

ShardedParameters::ShardedParameters(Worker& worker, const Group& replicas, Gradients& gradients,
                                     int64_t elementsPerLayer, int layers)
    : m_worker(worker),
      m_replicas(replicas),
      m_gradients(gradients),
      m_elementsPerLayer(elementsPerLayer),
      m_layers(layers),
      m_overlap(worker.scenario().parallel.overlap && worker.scenario().parallel.prefetch &&
                !worker.scenario().faults.noOverlap && !worker.scenario().faults.noPrefetch) {
    m_data = worker.allocate(gradients.storedElements() * dtypeBytes(worker.scenario().model.dtype));
    m_partEnds = worker.allocateTable(gradients.partEnds().size());
    std::copy(gradients.partEnds().begin(), gradients.partEnds().end(), m_partEnds);
    for (size_t bucket = 0; bucket < gradients.buckets(); ++bucket) m_gathered.push_back(worker.newEvent());
}

KernelTask ShardedParameters::task(TaskOp op, int64_t storedBegin, int64_t storedEnd, int step) const {
    KernelTask task = m_worker.task(op, m_worker.scenario().model.dtype, m_data);
    task.first = static_cast<uint64_t>(storedBegin);
    task.count = static_cast<uint64_t>(storedEnd - storedBegin);
    task.end = static_cast<uint64_t>(m_gradients.storedElements());
    task.chunkEnds = m_partEnds;
    task.chunks = m_gradients.partEnds().size();
    task.layer = 0;
    task.step = static_cast<uint32_t>(step);
    return task;
}

void ShardedParameters::initialise() {
    for (size_t bucket = 0; bucket < m_gradients.buckets(); ++bucket) {
        const Bucket& stored = m_gradients.stored(bucket);
        m_worker.launch(Transformer::cast(stored.end - stored.begin, dtypeBytes(m_worker.scenario().model.dtype)),
                        task(TaskOp::setParameter, stored.begin, stored.end, 0));
    }
}

KernelTask ShardedParameters::use(int layer) {
    const int64_t first = firstElement(layer);
    const int64_t last = first + m_elementsPerLayer - 1;
    for (size_t bucket = m_gradients.bucketOf(first); m_overlap && bucket <= m_gradients.bucketOf(last); ++bucket)
        m_worker.computeAfter(m_gathered[bucket]);
    return task(TaskOp::checkParameter, m_gradients.storedAt(first), m_gradients.storedAt(last) + 1, m_worker.step());
}

void ShardedParameters::update() {
    // Buckets are numbered from the last layer to the first, which the next step needs first.
    for (size_t bucket = m_gradients.buckets(); bucket-- > 0;) {
        const Bucket& stored = m_gradients.stored(bucket);
        const int64_t part = (stored.end - stored.begin) / m_replicas.size;
        const int64_t begin = stored.begin + part * m_replicas.rank;
        m_gradients.optimizePart(bucket);
        m_worker.launch(Transformer::cast(part, dtypeBytes(m_worker.scenario().model.dtype)),
                        task(TaskOp::setParameter, begin, begin + part, m_worker.step() + 1));
        gather(bucket);
    }
    if (!m_overlap) m_worker.computeAfter(m_replicas);
}

void ShardedParameters::gather(size_t bucket) {
    const Dtype dtype = m_worker.scenario().model.dtype;
    const Bucket& stored = m_gradients.stored(bucket);
    const int64_t part = (stored.end - stored.begin) / m_replicas.size;
    void* whole = m_worker.at(m_data, stored.begin * dtypeBytes(dtype));
    void* own = m_worker.at(m_data, (stored.begin + part * m_replicas.rank) * dtypeBytes(dtype));
    m_worker.startAfterCompute(m_replicas);
    m_worker.allGather(m_replicas, own, whole, part, dtype);
    m_worker.record(m_replicas, m_gathered[bucket]);
}

}  // namespace rankscope::reference
