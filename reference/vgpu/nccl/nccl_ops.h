// SPDX-License-Identifier: Apache-2.0
// NCCL calls between being made and being launched: the group they are part of, and the kernels that carry them.
#pragma once

#include "reference/vgpu/engine/exchange.h"
#include "reference/vgpu/nccl/nccl_comm.h"

namespace rankscope::vgpu {

struct NcclCall {
    const char* function;  ///< "AllReduce", as in kernel names
    ncclComm_t comm;
    cudaStream_t stream;
    ExchangeSpec data;  ///< comm, rank, size, key are filled in at launch
    double bytes = 0;   ///< whole buffer in the cost model's sense
    size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    ncclRedOp_t op = ncclSum;
    uint64_t userTag = 0;      ///< of its settings, for profiler plugins
    void* apiEvent = nullptr;  ///< the profiler plugin's, of the call itself
};

/// Takes a call: launches it, or keeps it until the thread's group ends.
ncclResult_t issue(NcclCall call);

/// Calls of ncclGroupStart that have not ended, on this thread.
int groupDepth();
ncclResult_t startGroup();
ncclResult_t endGroup();
/// Inside a group: joins with the group's end. Outside: at once.
ncclResult_t requestComm(CommRequest request);

}  // namespace rankscope::vgpu
