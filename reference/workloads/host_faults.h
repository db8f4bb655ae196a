// SPDX-License-Identifier: Apache-2.0
// Faults of a rank's host, planted where every kind of job passes: at the start of a step, before a batch is copied,
// before a launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "reference/workloads/jitter_plan.h"
#include "reference/workloads/launch_spread.h"
#include "reference/workloads/scenario.h"
#include "reference/workloads/virtual_gpu.h"

namespace rankscope::reference {

class HostFaults {
  public:
    /// `blockBytes`: size of the block that alloc_churn gives back and takes again, that of an activation.
    HostFaults(const Scenario& scenario, int rank, const VirtualGpu& virtualGpu, int64_t blockBytes);
    ~HostFaults();
    HostFaults(const HostFaults&) = delete;
    HostFaults& operator=(const HostFaults&) = delete;

    void beginStep(int step);
    /// Host time that the data loader takes beyond the usual.
    int64_t inputDelayNs() const;
    /// What the host does before it launches the next kernel on `compute`.
    void beforeLaunch(cudaStream_t compute);
    /// Into how many kernels a kernel of `ns` nanoseconds is cut; 1 = not at all. Counts them.
    int pieces(double ns);
    /// Host time of each piece beyond the usual.
    int64_t pieceDelayNs() const;

  private:
    void readValueBack(cudaStream_t compute);
    void churn();
    void copyFromPageable(cudaStream_t compute);

    const Faults& m_faults;
    const VirtualGpu& m_virtualGpu;
    int m_rank;
    JitterPlan m_jitter;
    LaunchSpread m_synchronisations, m_allocations, m_copies;
    int m_step = -1;
    int m_launch = 0;
    int m_piecesLeft = 0;
    int64_t m_blockBytes;
    int64_t m_copyBytes = 0;
    void* m_block = nullptr;
    float* m_value = nullptr;     ///< on the device
    void* m_offloaded = nullptr;  ///< pageable
    void* m_onDevice = nullptr;
};

}  // namespace rankscope::reference
