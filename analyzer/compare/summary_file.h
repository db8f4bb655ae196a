// SPDX-License-Identifier: Apache-2.0
// A run's summary as a file, and a baseline: a folder of them that CI keeps or that is committed (docs/compare.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/compare/comparability.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// A summary that cannot be read: which file, where in it, what to do.
struct SummaryError : CompareError {
    using CompareError::CompareError;
};

inline constexpr const char* kSummarySchema = "rankscope.run-summary/1";

/// Writes a summary: the same one gives the same bytes.
std::string renderSummary(const RunSummary& summary);

/// `origin` is named in errors, and kept as RunSummary::file. Throws SummaryError.
RunSummary parseSummary(const std::string& text, const std::string& origin);
RunSummary readSummary(const std::filesystem::path& file);

/// Sixteen hexadecimal digits that stand for the contents (64-bit FNV-1a of the text without name, label and tool
/// version) and the run's start, as runs of a virtual job may repeat each other to the nanosecond: two saved summaries
/// of one run are one file.
std::string summaryId(const RunSummary& summary);

/// Is the same for the same bytes on every machine and in every version (FNV-1a of 64 bits,
/// http://www.isthe.com/chongo/tech/comp/fnv/).
constexpr uint64_t contentHash(std::string_view bytes) noexcept {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

/// The files of a baseline, in the order of their names; none when there is no such folder. Hidden files and others
/// than *.json are not looked at. Throws std::filesystem::filesystem_error where the folder cannot be read.
std::vector<std::filesystem::path> baselineFiles(const std::filesystem::path& folder);

/// Reads them all, as sortByTime() leaves them (baseline_entries.h). Throws SummaryError at the first that is no
/// summary.
std::vector<RunSummary> readBaseline(const std::filesystem::path& folder);

/// The same without what says why a step is as long as it is (ranks, messages, kernels): enough to choose runs by, in a
/// tenth of the memory.
std::vector<RunSummary> readBaselineHeads(const std::filesystem::path& folder);

/// Reads all of runs of which only the head was read. Those that are gone since are left out.
std::vector<RunSummary> readWhole(const std::vector<RunSummary>& heads);

/// Reads files that were listed before; those that are gone since are left out, as another build may prune what this
/// one reads.
std::vector<RunSummary> readSavedRuns(const std::vector<std::filesystem::path>& files);

/// Writes NAME.json for each with NAME = summaryId(), beside and renamed, and makes the folder where there is none.
/// Runs that are saved together are one entry, the newest; under the label of the newest entry they belong to that. A
/// run that is saved again keeps its place, and without a label the one it was saved under. Throws
/// std::filesystem::filesystem_error.
std::vector<std::filesystem::path> saveToBaseline(const std::vector<RunSummary>& runs,
                                                  const std::filesystem::path& folder);

/// Marks the runs with that label, or those of the newest entry, as the beginning of a level, and says which files.
/// Throws like readBaseline().
std::vector<std::filesystem::path> acceptInBaseline(const std::filesystem::path& folder, const std::string& label);

/// Removes the runs with that label, and says which files. Throws like readBaseline().
std::vector<std::filesystem::path> removeFromBaseline(const std::filesystem::path& folder, const std::string& label);

/// Removes all but the `keep` youngest runs of each kind of job, and says which files. Throws like readBaseline().
std::vector<std::filesystem::path> pruneBaseline(const std::filesystem::path& folder, size_t keep);

}  // namespace rankscope::compare
