// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::cli {

// A side of a comparison as the user named it: runs, saved summaries and baseline folders, in that order. Traces are
// collected and analyzed on the way. Throws VerbError (exit code 3), store::Error.
std::vector<compare::RunSummary> readSummaries(const std::vector<std::string>& names, unsigned workers,
                                               const Console& console);

// Tells whether a folder is a baseline: it holds no run but *.json files, or nothing but a README or hidden files.
bool isBaselineFolder(const std::string& name);

// Is true for a folder with a database or captures: a run.
bool isRunFolder(const std::string& name);

}  // namespace rankscope::cli
