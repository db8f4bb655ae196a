// SPDX-License-Identifier: Apache-2.0
// A communicator as one rank of this process holds it, and how ranks find each other.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/nccl_cost_model.h"
#include "reference/vgpu/engine/public_api.h"
#include "reference/vgpu/engine/reductions.h"
#include "reference/vgpu/plugins/tuner_plugin.h"

/// NCCL's opaque type.
struct ncclComm {
    uint32_t shared;
    int rank, size, device;
    uint64_t hash;
    std::string name;
    rankscope::vgpu::CommShape shape;
    rankscope::vgpu::AlgorithmRules rules;
    rankscope::vgpu::Tuner tuner;
    uint64_t collectives = 0;               ///< issued so far: names the next one for all members
    std::vector<uint64_t> sends, receives;  ///< per peer
    uint32_t splits = 0;
    std::map<int, rankscope::vgpu::Reduction> customOps;
    int nextCustomOp = 0;
    /// Newest operation per stream. LocalProcess::mutex() is held.
    std::vector<rankscope::vgpu::StreamPoint> pending;
    std::shared_ptr<std::atomic<bool>> aborted =
        std::make_shared<std::atomic<bool>>(false);  ///< also held by pending effects
    bool finalized = false;                          ///< nothing more is asked of its peers: they may be gone
    void* profilerContext = nullptr;
    bool profiled = false;
    std::map<std::string, uint64_t> functionCounts;  ///< numbers the calls of each function for the plugin
};

namespace rankscope::vgpu {

/// One pending initialisation: joined at once or at the end of the group, then waited for.
struct CommRequest {
    unsigned char id[128];
    int size, rank, device;
    ncclComm_t* result;
    std::string name;
    int color = 0, key = 0;
};

/// Enters the rendezvous; `arrivedNs` is the caller's clock. kNone: the request contradicts the others'.
uint32_t joinComm(LocalProcess& process, const CommRequest& request, int64_t arrivedNs);

/// Waits for the others and builds the handle.
ncclResult_t completeComm(LocalProcess& process, const CommRequest& request, uint32_t shared);

/// The newest operation of this rank on each stream.
std::vector<StreamPoint> pendingOn(LocalProcess& process, const ncclComm& comm);

/// Ends this rank's unfinished operations on the communicator; the others' stay.
void abortPending(LocalProcess& process, ncclComm& comm);

/// This rank is through with the communicator: that its process ends is no error of the others'.
void leaveComm(LocalProcess& process, const ncclComm& comm);

/// Whether this rank waits on the communicator for a member that has ended. One that ends while nothing is under way is
/// no error: NCCL does not notice it either, and jobs end so, without a word, at different times.
bool waitsForDeadMember(LocalProcess& process, const ncclComm& comm);

}  // namespace rankscope::vgpu
