// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "analyzer/cli/job/job_process.h"
#include "analyzer/recommend/tuner_csv.h"

namespace rankscope::cli {

// Reads and checks a tuner file. No rows: the file has a heading or comments alone, as `recommend` writes it where
// nothing is to be forced. Throws VerbError (exit code 3) that names the file, each wrong line and what to do about it.
std::vector<recommend::TunerRow> readTunerFile(const std::filesystem::path& file);

// Says of a job that is to run with these rows in this environment that there are none, or that a variable comes before
// them. Empty: nothing to say.
std::string tunerNote(const std::filesystem::path& file, const std::vector<recommend::TunerRow>& rows,
                      const Environment& environment);

// The rows as one line, the form in which a job gets them.
std::string tunerRowsForJob(const std::vector<recommend::TunerRow>& rows);

}  // namespace rankscope::cli
