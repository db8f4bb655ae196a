// SPDX-License-Identifier: Apache-2.0
#include "analyzer/analyze.h"

#include "analyzer/detectors/detector.h"
#include "analyzer/report/build_report.h"
#include "analyzer/report/result_store.h"
#include "analyzer/timeline/phase_one.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::analyzer {
namespace {

TraceFacts readFacts(const std::filesystem::path& database) {
    store::TraceReader trace(database);
    return readTraceFacts(trace);
}

}  // namespace

Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options) {
    const std::filesystem::path database = store::TraceReader::databasePath(trace);

    // Phase 1: each rank for itself, one rank's events in memory per worker.
    TraceFacts facts = readFacts(database);
    std::vector<RankSummary> ranks = summarizeRanks(database, facts, options.workers);

    // Phase 2: what the ranks did to each other.
    const Analysis analysis = makeAnalysis(std::move(facts), std::move(ranks));
    Report report = buildReport(analysis, detect(analysis));

    if (options.storeResults) {
        try {
            storeResults(database, analysis, report);
        } catch (const store::Error& error) {
            report.losses.push_back({"results_not_stored", "info", 1, std::string("the results are not kept in the trace: ") + error.what(), std::nullopt});
        }
    }
    return report;
}

}  // namespace rankscope::analyzer
