// SPDX-License-Identifier: Apache-2.0
// Every importer by name, and which of them a file is for.
#pragma once

#include <filesystem>
#include <span>

#include "collector/importers/reader.h"

namespace rankscope::collector {

extern const Reader kFlightRecorderReader;
extern const Reader kKinetoReader;
extern const Reader kNsysReader;
extern const Reader kInspectorReader;
extern const Reader kExportReader;
extern const Reader kRocprofReader;
extern const Reader kRocpdReader;
extern const Reader kXplaneReader;
extern const Reader kNcclProfilerReader;

/// The table: all of them, in the order in which they are asked.
std::span<const Reader* const> readers();

/// The reader among them that a file is for, told by its first bytes. Throws ImportError where there is none, which
/// names the format if it is known, and when the file cannot be opened or is empty.
const Reader& readerOf(const std::filesystem::path& file, std::span<const Reader* const> among = readers());

}  // namespace rankscope::collector
