// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "analyzer/recommend/tuner_csv.h"

namespace rankscope::cli {

// Reads and checks a tuner file. Throws VerbError (exit code 3) that names the file, each wrong line and what to do about it.
std::vector<analyzer::TunerRow> readTunerFile(const std::filesystem::path& file);

// The rows as one line, the form in which a job gets them.
std::string tunerRowsForJob(const std::vector<analyzer::TunerRow>& rows);

}  // namespace rankscope::cli
