// SPDX-License-Identifier: Apache-2.0
// Parameters of which every rank updates its part of each bucket and gathers the rest, as ZeRO-1 and ZeRO-2 do it. A
// bucket leaves as soon as the optimizer is done with it; the next forward pass waits for a layer's buckets when it
// comes to the layer (Megatron-LM's overlap_param_gather), or the step waits for all of them without parallel.overlap
// or parallel.prefetch.
#pragma once

#include <vector>

#include "reference/workloads/gradients.h"

namespace rankscope::reference {

class ShardedParameters {
  public:
    /// Lies as `gradients` does, whose life must be longer.
    ShardedParameters(Worker& worker, const Group& replicas, Gradients& gradients, int64_t elementsPerLayer,
                      int layers);

    /// Every rank sets all parameters.
    void initialise();
    /// Before the first kernel of a layer in forward: waits for its parameters. Returns that kernel's task, which
    /// checks them.
    KernelTask use(int layer);
    /// The optimizer on this rank's parts, and the all-gathers.
    void update();

  private:
    int64_t firstElement(int layer) const { return m_elementsPerLayer * (m_layers - 1 - layer); }
    KernelTask task(TaskOp op, int64_t storedBegin, int64_t storedEnd, int step) const;
    void gather(size_t bucket);

    Worker& m_worker;
    Group m_replicas;
    Gradients& m_gradients;
    int64_t m_elementsPerLayer;
    int m_layers;
    bool m_overlap;
    void* m_data = nullptr;
    uint64_t* m_partEnds = nullptr;
    std::vector<cudaEvent_t> m_gathered;  ///< per bucket
};

}  // namespace rankscope::reference
