// SPDX-License-Identifier: Apache-2.0
// What a kernel of the reference workloads claims to do. It is the first parameter of every such kernel, so that the
// virtual GPU can price a launch from its arguments alone.
#pragma once

namespace rankscope::reference {

struct KernelCost {
    double flop;   ///< floating-point operations of the whole grid
    double bytes;  ///< bytes read and written in device memory by the whole grid
};

}  // namespace rankscope::reference
