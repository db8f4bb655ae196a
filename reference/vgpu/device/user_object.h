// SPDX-License-Identifier: Apache-2.0
// Objects of the program that graphs keep alive, counted by their holders.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace rankscope::vgpu {

cudaUserObject_t createUserObject(void* pointer, cudaHostFn_t destroy, unsigned holders);
/// False if the object is gone or unknown, or `holders` is 0.
bool retainUserObject(cudaUserObject_t object, unsigned holders);
/// The last holder's release calls the destructor. False if that many do not hold it.
bool releaseUserObject(cudaUserObject_t object, unsigned holders);

/// Releases what a graph holds when the graph and all that was made of it are gone.
std::shared_ptr<void> heldByGraph(cudaUserObject_t object, unsigned holders);

}  // namespace rankscope::vgpu
