// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "collector/importers/reader.h"

namespace rankscope::collector {

/// The reader of files that a mapping (trace_mapping.h) tells how to read; it takes these files and no others. Throws
/// ImportError for what is no mapping, and for a file that cannot be used.
Reader mappedReader(const std::filesystem::path& mapping, const std::vector<std::filesystem::path>& files);

}  // namespace rankscope::collector
