// SPDX-License-Identifier: Apache-2.0
// The host side of NCCL's tuner plugins: loads the one NCCL_TUNER_PLUGIN names and lets it change the cost table of
// each collective.
#pragma once

#include <optional>

#include "reference/vgpu/engine/nccl_cost_model.h"
#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

class Tuner {
  public:
    /// Gives the plugin, if there is one, a context for this communicator. Its error is the communicator's.
    ncclResult_t open(const Cluster& cluster, const CommShape& shape, uint64_t commId);
    void close();

    /// Model, environment and plugin together. `best` stays empty when nothing is left to choose from; the plugin's
    /// error is returned.
    ncclResult_t choose(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules,
                        TransferKind function, double bytes, std::optional<CollectiveCost>& best) const;

  private:
    void* m_context = nullptr;
    bool m_open = false;
};

}  // namespace rankscope::vgpu
