// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/analyze.h"

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/report/build_report.h"
#include "analyzer/report/result_store.h"
#include "analyzer/report/step_overview_painter.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::report {
job::Analysis readWithOverview(const std::filesystem::path& database, job::LoadOptions options,
                               StepOverview& overview) {
    std::optional<StepOverviewPainter> painter;
    options.observer = [&painter](const facts::TraceFacts& facts) {
        painter.emplace(facts);
        return [&painter](const facts::RankEvents& events) { painter->take(events); };
    };
    job::Analysis analysis = job::readAnalysis(database, options);
    overview = std::move(*painter).finish();
    return analysis;
}

Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options) {
    const std::filesystem::path database = store::TraceReader::databasePath(trace);
    std::optional<StepOverview> overview;
    const job::LoadOptions load{options.workers, options.links, {}};
    const job::Analysis analysis =
        options.overview ? readWithOverview(database, load, overview.emplace()) : job::readAnalysis(database, load);
    diagnose::Claims claims;
    std::vector<job::Finding> findings = diagnose::detect(analysis, claims);
    const std::optional<diagnose::Ceiling> ceiling = diagnose::priceFindings(analysis, findings);
    Report report = buildReport(analysis, claims, std::move(findings));
    report.overview = std::move(overview);
    if (ceiling) report.replay.ceiling = {ceiling->savingNs, ceiling->share, ceiling->findings};

    if (options.storeResults) {
        try {
            storeResults(database, analysis, report);
        } catch (const store::Error& error) {
            report.losses.push_back({"results_not_stored", "info", 1,
                                     std::string("the results are not kept in the trace: ") + error.what(),
                                     std::nullopt});
        }
    }
    return report;
}

}  // namespace rankscope::report
