// SPDX-License-Identifier: Apache-2.0
// What the names of PyTorch's own kernels, and of those it compiles with Triton, tell of the memory they move. Most of
// them do little else.
#pragma once

#include <optional>
#include <string_view>

namespace rankscope::vgpu {

struct KernelFamily {
    bool countsElements = false;  ///< the first parameter is an int, the number of elements
    double bytesPerElement = 0;
    double bytesPerThread = 0;  ///< where the number of elements is not told
};

/// Nothing for kernels of other origin, and for those of PyTorch that compute more than they move.
std::optional<KernelFamily> kernelFamily(std::string_view mangledName);

}  // namespace rankscope::vgpu
