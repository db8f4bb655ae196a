// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "collector/store/vocabulary.h"
#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// What a CUDA runtime or driver call means for a diagnosis, by its name.
store::ApiKind apiKindOf(std::string_view callName) noexcept;

/// Name of a hooked call.
std::string_view hookedCallName(capture::CudaApi api) noexcept;

}  // namespace rankscope::collector
