// SPDX-License-Identifier: Apache-2.0
// How a machine differs from NCCL's model. Published nccl-tests tables lie smoothly around what the model predicts of
// them, further over nodes than inside one; some sizes take several times what their neighbours take; and links reach a
// part of what their makers say. A world draws all of it from one number; NCCL chooses by its model as before, since it
// does not know either.
#pragma once

#include <cstdint>

#include "reference/vgpu/engine/nccl_cost_model.h"

namespace rankscope::vgpu {

/// Draws which share of their rates the links reach, and which beside compute. Leaves what a scenario says itself (less
/// than 1), and all of it where the world is ideal (0).
void drawLinks(Cluster& cluster);

/// How many times what the model predicts a collective takes. `overLeast`: how many times the least share that healthy
/// links reach these do; a message that bytes decide is no later against that least share than in any published table,
/// but for kinks.
double worldFactor(uint64_t world, const CommShape& shape, TransferKind function, Algorithm algorithm,
                   Protocol protocol, double bytes, double overLeast = 1);

/// The cost as it is in the cluster's world: no rate exceeds what the links are told to do.
CollectiveCost inWorld(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes,
                       CollectiveCost cost);

}  // namespace rankscope::vgpu
