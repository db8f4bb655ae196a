// SPDX-License-Identifier: Apache-2.0
// A replica's gradients and their reduction in buckets, as DistributedDataParallel does it; the optimizer works on all
// of them, or as in ZeRO (Rajbhandari et al., 2020) on this rank's part of each bucket.
#pragma once

#include <vector>

#include "reference/workloads/buckets.h"
#include "reference/workloads/worker.h"

namespace rankscope::reference {

/// What is reduced together: the gradients of `layers` layers, each of the given tensors (numbers of elements), in the
/// order in which backward finishes them.
struct GradientTensors {
    std::vector<int64_t> ofLayer;
    int layers = 0;
    uint32_t salt = 0;  ///< tells what different ranks hold apart in the arithmetic

    std::vector<int64_t> all() const;
    int64_t elements() const;
};

enum class GradientSharding : uint8_t {
    none,
    optimizer,  ///< ZeRO-1: every rank gets all sums and updates its part
    gradients,  ///< ZeRO-2: every rank gets the sums of its part
};

/// Buckets as parallel.bucket_mb and the planted faults ask for; where buckets have equal sizes, `shards` divides them.
std::vector<Bucket> planGradientBuckets(const Scenario& scenario, const GradientTensors& tensors, int shards = 1);

class Gradients {
  public:
    /// The ranks of `replicas` sum their gradients.
    Gradients(Worker& worker, const Group& replicas, const GradientTensors& tensors,
              GradientSharding sharding = GradientSharding::none);

    /// Device memory: all of it, and the largest bucket.
    static int64_t bytes(const Scenario& scenario, const GradientTensors& tensors);
    static int64_t largestBucketBytes(const Scenario& scenario, const GradientTensors& tensors);

    /// Call before backward of micro-step `micro` of `microSteps`; `synchronise`: this one is reduced; `keep`: adds to
    /// the earlier ones.
    void beginBackward(int micro, int microSteps, bool synchronise, bool keep);
    /// The task of the kernel that finishes the next `elements` elements.
    KernelTask nextTask(int64_t elements) const;
    /// Those elements are done on the compute stream: reduces the buckets that became complete, unless `overlap` is
    /// off.
    void ready(int64_t elements, bool overlap);
    /// Reduces what is left, and makes the compute stream wait for all of it.
    void endBackward();
    /// Launches the optimizer: a kernel per tensor, which checks the sums at the ends of its bucket, and one cast per
    /// layer.
    void optimize();
    /// Launches the optimizer for this rank's part of a bucket; checks the sums there.
    void optimizePart(size_t bucket);

    Dtype dtype() const { return m_worker.scenario().parallel.gradDtype; }
    size_t buckets() const { return m_buckets.size(); }
    /// Where a bucket is stored: a whole number of elements for each rank, the last rank's end being padding.
    const Bucket& stored(size_t bucket) const { return m_stored[bucket]; }
    int64_t storedElements() const { return m_stored.back().end; }
    /// The bucket that holds an element, counted in the order in which backward finishes them.
    size_t bucketOf(int64_t element) const;
    int64_t storedAt(int64_t element) const;
    /// The ends of every rank's part of every bucket.
    const std::vector<uint64_t>& partEnds() const { return m_partEnds; }

  private:
    void store();
    void reduceNext();
    int64_t partLength(size_t bucket) const {
        return (m_stored[bucket].end - m_stored[bucket].begin) / m_replicas.size;
    }
    KernelTask checkTask(int64_t storedBegin, int64_t elements) const;
    void describe(KernelTask& task, int64_t storedBegin, int64_t elements) const;

    Worker& m_worker;
    Group m_replicas;
    GradientTensors m_tensors;
    GradientSharding m_sharding;
    std::vector<Bucket> m_buckets;
    std::vector<Bucket> m_stored;
    std::vector<uint64_t> m_partEnds;
    uint64_t* m_chunkEnds = nullptr;  ///< where values are known: the ends of what is sent at a time
    size_t m_chunks = 0;
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
