// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rankscope::collector {

enum class TraceFormat { kineto, nsysSqlite, nsysReport, flightRecorder, flightRecorderPickle, captureFile, unknown };

/// Looks at the first bytes (of the inflated text). Throws ImportError when the file cannot be opened or is empty.
TraceFormat detectFormat(const std::filesystem::path& file);

}  // namespace rankscope::collector
