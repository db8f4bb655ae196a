// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collector {

struct Reader;

struct ImportOptions {
    /// Recordings are kept in memory up to this many bytes; the files of ranks beyond it are read a second time.
    uint64_t keepBytes = 1ull << 30;
    /// Peaks of the links as the user tells them (store::parseLinkSpec), for meta `links`; empty: not told.
    std::string links;
    /// Called when a file has been read, for a progress display. May be empty.
    std::function<void(const std::filesystem::path& file, size_t done, size_t of)> progress;
    /// A file that says how the others are to be read (docs/mappings.md); empty: their content tells.
    std::filesystem::path mapping;
    /// Every CPU operator and Python function of a trace becomes a range, not only those that tell what the host did
    /// while the device stood idle.
    bool allOperations = false;
    /// Others may read the run, as the umask has it; else it is the user's alone (store::makeRunFolder).
    bool shared = false;
    /// The formats to know; empty: all (readers.h).
    std::span<const Reader* const> readers;
};

/// What an import saw, for the closing line of the verb.
struct ImportResult {
    std::string source;          ///< the reader's name
    std::vector<int32_t> ranks;  ///< ascending
    uint64_t events = 0;         ///< in the files, needed or not
    uint64_t kernels = 0;
    bool isRecorder = false;  ///< the events are calls; there are no kernels
    uint64_t losses = 0;      ///< rows of warning or worse
};

/// Endings of the names that files of the readable formats have: ".json", ".json.gz". For picking files from a folder.
std::vector<std::string_view> importEndings();

/// Whether a file is, by its first bytes, of a format whose files have any name ("nccl_trace_rank_0"). False for what
/// cannot be read.
bool isImportableByContent(const std::filesystem::path& file);

/// Makes `outRunDir`/trace.db from other tools' traces of one run, all of one format; it is found by content, not by
/// name. Throws ImportError (file, offset, cause, hint) when a file is nothing that can be imported; nothing is
/// written then. What is damaged but readable is imported, and what is missing of it is a row of the loss table.
ImportResult importRun(const std::vector<std::filesystem::path>& files, const std::filesystem::path& outRunDir,
                       const ImportOptions& options = {});

}  // namespace rankscope::collector
