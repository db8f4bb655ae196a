// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// What is known of a process whose file holds no last word.
enum class SilentEnd {
    running,  ///< it lives, on this machine
    killed,   ///< it left its .ring file behind, which every farewell removes
    unknown,  ///< the file may have been cut, or copied without its .ring file
};

SilentEnd silentEndOf(const std::filesystem::path& capture, const capture::FileHeader& header);

}  // namespace rankscope::collector
