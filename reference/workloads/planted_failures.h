// SPDX-License-Identifier: Apache-2.0
// Faults that end a job: a rank that dies, runs out of memory, hangs or disagrees about a collective; and the watchdog
// by which the others end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "reference/workloads/scenario.h"
#include "reference/workloads/virtual_gpu.h"

namespace rankscope::reference {

/// What a rank is about to ask NCCL for.
struct Collective {
    enum class Op { allReduce, allGather, reduceScatter } op;
    const void* from;
    void* to;
    int64_t elements;  ///< as NCCL counts them for this operation
    Dtype dtype;
    const void* communicator = nullptr;

    /// NCCL takes one for the other.
    bool operator==(const Collective& other) const {
        return op == other.op && elements == other.elements && dtype == other.dtype;
    }
};

class PlantedFailures {
  public:
    PlantedFailures(const Faults& faults, int rank, const VirtualGpu& virtualGpu)
        : m_faults(faults), m_virtualGpu(virtualGpu), m_rank(rank) {}

    /// Inside a step, after its first forward pass: dies, runs out of memory (throws DeviceError), or hangs and is
    /// ended, where that is planted.
    void strike(int step) const;
    /// While the next batch is fetched: hangs there, where that is planted.
    void load(int step) const;
    /// Issues a collective of `groupSize` ranks by `issue`, or something else where disagreement is planted.
    void issue(int step, int groupSize, const Collective& collective,
               const std::function<void(const Collective&)>& issue);
    /// At the end of a step: waits for the stream. Throws where two collectives should have changed places and none
    /// could. In and after the step of a failure the wait ends like torch's with a collective that times out
    /// (ProcessGroupNCCL's watchdog): a message and SIGABRT.
    void waitFor(cudaStream_t stream, int step);

  private:
    [[noreturn]] void hang() const;
    bool disagrees(int step) const;
    Collective disagreeing(Collective collective, int groupSize) const;

    const Faults& m_faults;
    const VirtualGpu& m_virtualGpu;
    int m_rank;
    bool m_disagreed = false;
    std::function<void()> m_held;
    Collective m_heldCollective{};
};

}  // namespace rankscope::reference
