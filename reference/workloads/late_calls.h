// SPDX-License-Identifier: Apache-2.0
// The fault late_launch: the host issues what belongs to communication `lag` later than the compute stream has come to
// where it was due. What the host has to launch meanwhile it launches first, so that compute goes on. One thread plays
// both: calls wait in a queue until someone needs their result.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "reference/workloads/virtual_gpu.h"

namespace rankscope::reference {

class LateCalls {
  public:
    /// `lagNs` 0: nothing is late, calls are made at once.
    LateCalls(const VirtualGpu& virtualGpu, int64_t lagNs) : m_virtualGpu(virtualGpu), m_lagNs(lagNs) {}
    ~LateCalls();
    LateCalls(const LateCalls&) = delete;
    LateCalls& operator=(const LateCalls&) = delete;

    bool enabled() const { return m_lagNs > 0; }
    /// A call that is due when `compute` has done what it was given until now.
    void communicate(cudaStream_t compute, std::function<void()> call);
    /// `stream` waits for what `compute` was given until now.
    void order(cudaStream_t compute, cudaStream_t stream);
    /// A call that goes with the next one of communicate(), in the order of the calls. `records`: the event it records,
    /// if any.
    void prepare(std::function<void()> call, cudaEvent_t records = nullptr);
    /// Makes all calls up to the one that records the event; all, if there is none.
    void issueUntil(cudaEvent_t recorded);
    void issueAll();

  private:
    struct Call {
        std::function<void()> make;
        cudaEvent_t due;  ///< null: with the call before it
        cudaEvent_t records;
        cudaStream_t follows;  ///< a stream that has to wait for `due`
        int64_t dueNs;         ///< on m_clockNs; -1: not seen yet
    };
    cudaEvent_t mark(cudaStream_t compute);
    void issueFront();
    void passTime(int64_t ns);

    const VirtualGpu& m_virtualGpu;
    int64_t m_lagNs;
    std::deque<Call> m_calls;
    std::vector<cudaEvent_t> m_freeEvents;
    int64_t m_clockNs = 0;  ///< host time spent here
};

}  // namespace rankscope::reference
