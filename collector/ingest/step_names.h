// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::collector {

/// What the name of a range says of steps, the surest first.
enum class StepName : uint8_t {
    profilerStep,  ///< PyTorch's ProfilerStep
    saysStep,      ///< it speaks of steps or iterations, and not of the optimizer's or a scheduler's
    other,
};

/// `pattern` is a name without its number.
StepName stepNameOf(std::string_view pattern);

}  // namespace rankscope::collector
