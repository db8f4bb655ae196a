// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace rankscope::collector {

/// Name of a runtime or driver call by CUPTI's callback id (cbid), such as "cudaLaunchKernel".
std::string cuptiRuntimeCallName(uint32_t id);
std::string cuptiDriverCallName(uint32_t id);

}  // namespace rankscope::collector
