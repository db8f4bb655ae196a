// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analyzer/detectors/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::analyzer {

struct AnalyzeOptions {
    unsigned workers = 0;      // threads of phase 1; 0: one per core
    bool storeResults = true;  // write attribution, gaps and findings into trace.db (left out, with a loss row in the
                               // report, where it is read-only)
    bool overview = false;     // fill Report::overview, for reports with pictures
    LinkSources links;         // what is said of the links, beside what the trace holds
};

/// What detectors and edits read of a trace: both phases, no findings. `database` is a .db file, `workers` as in
/// AnalyzeOptions. Throws store::Error. `overview`, where given, gets a picture of one step. `links` as in
/// AnalyzeOptions.
Analysis readAnalysis(const std::filesystem::path& database, unsigned workers = 0,
                      std::optional<StepOverview>* overview = nullptr, const LinkSources& links = {});

/// trace.db to report. `trace` is a run name, a run directory or a .db file. Throws store::Error.
Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options = {});

}  // namespace rankscope::analyzer
