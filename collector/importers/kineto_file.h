// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

#include "collector/importers/reader.h"

namespace rankscope::collector {

/// Reads one file and hands over its rank, or those that it was merged from. Throws ImportError when nothing in it can
/// be used.
void readKinetoFile(const std::filesystem::path& file, const ReadOptions& options,
                    const std::function<void(FileRank)>& take);

}  // namespace rankscope::collector
