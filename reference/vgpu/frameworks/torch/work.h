// SPDX-License-Identifier: Apache-2.0
// The work of an operator, counted from the shapes of its arguments and results.
#pragma once

#include "reference/vgpu/engine/operator_api.h"
#include "reference/vgpu/frameworks/torch/operator_info.h"

namespace rankscope::torch_operators {

/// Arithmetic, and what is read and written of the arguments. `arguments` as in the schema.
RankscopeWork workOfArguments(const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments);
/// Adds the results that are new.
void addResults(RankscopeWork& work, const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments,
                c10::ArrayRef<c10::IValue> results);

}  // namespace rankscope::torch_operators
