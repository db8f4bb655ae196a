// SPDX-License-Identifier: Apache-2.0
#include "analyzer/analyze.h"

#include "analyzer/detectors/detector.h"
#include "analyzer/replay/savings.h"
#include "analyzer/report/build_report.h"
#include "analyzer/report/result_store.h"
#include "analyzer/report/step_overview_painter.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::analyzer {
Analysis readWithOverview(const std::filesystem::path& database, LoadOptions options, StepOverview& overview) {
    std::optional<StepOverviewPainter> painter;
    options.observer = [&painter](const TraceFacts& facts) {
        painter.emplace(facts);
        return [&painter](const RankEvents& events) { painter->take(events); };
    };
    Analysis analysis = readAnalysis(database, options);
    overview = std::move(*painter).finish();
    return analysis;
}

Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options) {
    const std::filesystem::path database = store::TraceReader::databasePath(trace);
    std::optional<StepOverview> overview;
    const LoadOptions load{options.workers, options.links, {}};
    const Analysis analysis =
        options.overview ? readWithOverview(database, load, overview.emplace()) : readAnalysis(database, load);
    Claims claims;
    std::vector<Finding> findings = detect(analysis, claims);
    const std::optional<Ceiling> ceiling = replaySavings(analysis, findings);
    Report report = buildReport(analysis, claims, std::move(findings));
    report.overview = std::move(overview);
    if (ceiling)
        report.replay.ceiling = {ceiling->saving.ns, ceiling->saving.lowNs, ceiling->saving.highNs, ceiling->share,
                                 ceiling->findings};

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

}  // namespace rankscope::analyzer
