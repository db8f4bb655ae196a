// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analyzer/diagnose/claims.h"
#include "analyzer/diagnose/plays.h"
#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

struct AnalyzeOptions {
    unsigned workers = 0;        // threads of this process; 0: its share of the cores
    bool storeResults = true;    // write attribution, gaps and findings into trace.db (left out, with a loss row in the
                                 // report, where it is read-only)
    bool overview = false;       // fill Report::overview, for reports with pictures
    costs::LinkSources links;    // what is said of the links, beside what the trace holds
    team::Team* team = nullptr;  // as of job::LoadOptions; the others of it call helpAnalyze()
    std::function<void(const std::string&)> tell = {};
    replay::ReplayLimits replayed = {};  // as of job::LoadOptions
};

/// Does what readAnalysis() does and paints one step on the way.
job::Analysis readWithOverview(const std::filesystem::path& database, job::LoadOptions options, StepOverview& overview);

/// trace.db to report. `trace` is a run name, a run directory or a .db file. Throws store::Error.
Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options = {});

/// What a process of the team does while its first one is in analyze(). `options` are the same as there.
void helpAnalyze(const std::filesystem::path& trace, team::Team& team, const AnalyzeOptions& options);

/// Takes `findings` with their savings replayed, and the `claims` of their detectors.
Report buildReport(const job::Analysis& analysis, const diagnose::Claims& claims, std::vector<job::Finding> findings,
                   diagnose::Plays& plays);

/// Makes one row per (communicator, op, size class); a size class spans a factor of four. Most time first.
std::vector<CollectiveRow> collectiveTable(const job::Analysis& analysis);

/// Replaces attribution, idle_gap, critical_path, rank_activity, cost_fit, finding and finding_evidence of trace.db,
/// all in one transaction.
void storeResults(const std::filesystem::path& database, const job::Analysis& analysis, const Report& report);

}  // namespace rankscope::report
