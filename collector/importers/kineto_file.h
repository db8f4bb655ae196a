// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "collector/importers/reader.h"

namespace rankscope::collector {

/// Reads one file, which is one rank's. Throws ImportError when nothing in it can be used.
FileRank readKinetoFile(const std::filesystem::path& file);

}  // namespace rankscope::collector
