// SPDX-License-Identifier: Apache-2.0
// What operators leave in memory. Kernels are not executed, so small results are computed by the operator's kernel for
// the CPU, in the order of the stream; large results are zeros.
#pragma once

#include <vector>

#include "reference/vgpu/engine/operator_api.h"
#include "reference/vgpu/frameworks/torch/operator_info.h"

namespace rankscope::torch_operators {

/// A call under way.
struct Call {
    const OperatorInfo* info = nullptr;
    std::vector<c10::IValue> arguments;
    RankscopeWork work{};
    bool isOutermost = true;
    bool isCovered = false;   ///< an enclosing call in place will be computed as a whole
    bool isComputed = false;  ///< in place and small enough: its own parts must not be computed
    bool hasComputedParts = false;
    bool writesHost = false;     ///< an argument that it changes is memory of the host, where copies put the values
    std::vector<size_t> chosen;  ///< of an operator on lists: the elements that are small enough to be computed
    int64_t answer = 0;          ///< to what the operator asks the device
    uint64_t seed = 0;           ///< of a random operator: its generator's seed and how far that one has come
};

/// Before the operator runs.
void prepareValues(Call& call, const RankscopeOperatorHooks& hooks);
/// After it has run: queues what it leaves behind its kernels. True if results are computed.
bool leaveValues(const Call& call, c10::ArrayRef<c10::IValue> results, const RankscopeOperatorHooks& hooks);

}  // namespace rankscope::torch_operators
