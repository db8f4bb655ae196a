// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analyzer/job/load.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

struct AnalyzeOptions {
    unsigned workers = 0;      // threads of phase 1; 0: one per core
    bool storeResults = true;  // write attribution, gaps and findings into trace.db (left out, with a loss row in the
                               // report, where it is read-only)
    bool overview = false;     // fill Report::overview, for reports with pictures
    costs::LinkSources links;  // what is said of the links, beside what the trace holds
};

/// readAnalysis(), and a picture of one step. `options.observer` is not used.
job::Analysis readWithOverview(const std::filesystem::path& database, job::LoadOptions options, StepOverview& overview);

/// trace.db to report. `trace` is a run name, a run directory or a .db file. Throws store::Error.
Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options = {});

}  // namespace rankscope::report
