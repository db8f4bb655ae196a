// SPDX-License-Identifier: Apache-2.0
// A replica's gradients and their all-reduce in buckets, as DistributedDataParallel does it.
#pragma once

#include <vector>

#include "reference/workloads/buckets.h"
#include "reference/workloads/worker.h"

namespace rankscope::reference {

class Gradients {
  public:
    /// Buckets in the order in which backward finishes them; the ranks of `replicas` sum theirs.
    Gradients(Worker& worker, const Group& replicas, std::vector<Bucket> buckets, int64_t elements);

    /// Call before backward of micro-step `micro` of `microSteps`; `synchronise`: this one is reduced; `keep`: adds to the earlier ones.
    void beginBackward(int micro, int microSteps, bool synchronise, bool keep);
    /// The task of the kernel that finishes the next `elements` elements.
    KernelTask nextTask(int64_t elements) const;
    /// Those elements are done on the compute stream: reduces the buckets that became complete, unless `overlap` is off.
    void ready(int64_t elements, bool overlap);
    /// Reduces what is left, and makes the compute stream wait for all of it.
    void endBackward();
    /// Launches the optimizer: a kernel per tensor, which checks the sums at the ends of its bucket, and one cast per layer.
    void optimize(const Transformer& transformer, int layers);

    Dtype dtype() const { return m_worker.scenario().parallel.gradDtype; }

  private:
    void reduceNext();
    KernelTask checkTask(int64_t begin, int64_t elements) const;
    void describe(KernelTask& task, int64_t begin, int64_t elements) const;

    Worker& m_worker;
    Group m_replicas;
    std::vector<Bucket> m_buckets;
    int64_t m_elements;
    void* m_data = nullptr;
    int64_t m_ready = 0;
    size_t m_reduced = 0;
    int m_micro = 0;
    int m_microSteps = 1;
    int m_microFirst = 0;  ///< first micro-step that the values reduced last contain
    bool m_synchronise = true;
    bool m_keep = false;
};

}  // namespace rankscope::reference
