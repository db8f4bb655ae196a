// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "collector/store/vocabulary.h"

namespace rankscope::collector {

/// What a CUDA or HIP, runtime or driver function does, by its name.
store::ApiKind apiKindFromName(std::string_view name);

}  // namespace rankscope::collector
