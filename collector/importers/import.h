// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collector {

struct ImportOptions {
    /// Recordings are kept in memory up to this many bytes; the files of ranks beyond it are read a second time.
    uint64_t keepBytes = 1ull << 30;
    /// Peaks of the links as the user tells them (store::parseLinkSpec), for meta `links`; empty: not told.
    std::string links;
    /// Called when a file has been read, for a progress display. May be empty.
    std::function<void(const std::filesystem::path& file, size_t done, size_t of)> progress;
};

/// What an import saw, for the closing line of the verb.
struct ImportResult {
    std::string source;          ///< kineto
    std::vector<int32_t> ranks;  ///< ascending
    uint64_t events = 0;         ///< in the files, needed or not
    uint64_t kernels = 0;
    uint64_t losses = 0;  ///< rows of warning or worse
};

/// Makes `outRunDir`/trace.db from other tools' traces of one run, one file per rank; the format is found by content,
/// not by name. Throws ImportError (file, offset, cause, hint) when a file is nothing that can be imported; nothing is
/// written then. What is damaged but readable is imported, and what is missing of it is a row of the loss table.
ImportResult importRun(const std::vector<std::filesystem::path>& files, const std::filesystem::path& outRunDir,
                       const ImportOptions& options = {});

}  // namespace rankscope::collector
