// SPDX-License-Identifier: Apache-2.0
// What a library built against a framework is given (operator_api.h).
#pragma once

#include "reference/vgpu/engine/operator_api.h"

namespace rankscope::vgpu {

const RankscopeOperatorHooks& operatorHooks();

}  // namespace rankscope::vgpu
