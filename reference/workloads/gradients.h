// SPDX-License-Identifier: Apache-2.0
// A replica's gradients and their all-reduce in buckets, as DistributedDataParallel does it.
#pragma once

#include <vector>

#include "reference/workloads/buckets.h"
#include "reference/workloads/worker.h"

namespace rankscope::reference {

/// What is reduced together: the gradients of `layers` layers, each of the given tensors (numbers of elements), in the order in which backward
/// finishes them.
struct GradientTensors {
    std::vector<int64_t> ofLayer;
    int layers = 0;
    uint32_t salt = 0;  ///< tells what different ranks hold apart in the arithmetic

    std::vector<int64_t> all() const;
    int64_t elements() const;
};

/// Buckets as parallel.bucket_mb and the planted faults ask for.
std::vector<Bucket> planGradientBuckets(const Scenario& scenario, const GradientTensors& tensors);

class Gradients {
  public:
    /// The ranks of `replicas` sum their gradients.
    Gradients(Worker& worker, const Group& replicas, const GradientTensors& tensors);

    /// Device memory: all of it, and the largest bucket.
    static int64_t bytes(const Scenario& scenario, const GradientTensors& tensors);
    static int64_t largestBucketBytes(const Scenario& scenario, const GradientTensors& tensors);

    /// Call before backward of micro-step `micro` of `microSteps`; `synchronise`: this one is reduced; `keep`: adds to the earlier ones.
    void beginBackward(int micro, int microSteps, bool synchronise, bool keep);
    /// The task of the kernel that finishes the next `elements` elements.
    KernelTask nextTask(int64_t elements) const;
    /// Those elements are done on the compute stream: reduces the buckets that became complete, unless `overlap` is off.
    void ready(int64_t elements, bool overlap);
    /// Reduces what is left, and makes the compute stream wait for all of it.
    void endBackward();
    /// Launches the optimizer: a kernel per tensor, which checks the sums at the ends of its bucket, and one cast per layer.
    void optimize();

    Dtype dtype() const { return m_worker.scenario().parallel.gradDtype; }

  private:
    void reduceNext();
    KernelTask checkTask(int64_t begin, int64_t elements) const;
    void describe(KernelTask& task, int64_t begin, int64_t elements) const;

    Worker& m_worker;
    Group m_replicas;
    GradientTensors m_tensors;
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
