// SPDX-License-Identifier: Apache-2.0
// A baseline: a folder of summaries, one file per run, that CI keeps or that is committed. Files are named by their
// contents, so that branches that add runs merge without conflict.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// The files of a baseline, in the order of their names; none when there is no such folder. Hidden files and others
/// than *.json are not looked at. Throws std::filesystem::filesystem_error where the folder cannot be read.
std::vector<std::filesystem::path> baselineFiles(const std::filesystem::path& folder);

/// Reads them all, oldest run first. Throws SummaryError at the first that is no summary.
std::vector<RunSummary> readBaseline(const std::filesystem::path& folder);

/// The same of files that were listed before; those that are gone since are left out, as another build may prune what
/// this one reads.
std::vector<RunSummary> readSavedRuns(const std::vector<std::filesystem::path>& files);

/// Writes NAME.json with NAME = hash of summaryId() and start (or where an earlier version put this run), beside and
/// renamed, and makes the folder where there is none. A run without a label keeps the one it was saved under. Throws
/// std::filesystem::filesystem_error.
std::filesystem::path saveToBaseline(const RunSummary& summary, const std::filesystem::path& folder);

/// Removes all but the `keep` youngest runs, and says which files. Throws like readBaseline().
std::vector<std::filesystem::path> pruneBaseline(const std::filesystem::path& folder, size_t keep);

}  // namespace rankscope::compare
