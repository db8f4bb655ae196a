// SPDX-License-Identifier: Apache-2.0
#include "analyzer/analyze.h"

#include <map>
#include <mutex>

#include "analyzer/detectors/detector.h"
#include "analyzer/replay/replay.h"
#include "analyzer/replay/savings.h"
#include "analyzer/report/build_report.h"
#include "analyzer/report/result_store.h"
#include "analyzer/report/step_overview_painter.h"
#include "analyzer/timeline/phase_one.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::analyzer {
namespace {

/// The ranks' tasks, handed in by the workers of phase 1.
class ReplayTasks {
  public:
    ReplayTasks(const TraceFacts& facts, const ReplayWindow& window) : m_facts(facts), m_window(window) {}
    void take(const RankEvents& events) {
        RankTasks tasks = rankTasks(events, m_facts, m_window);
        const std::lock_guard lock(m_mutex);
        m_ranks.emplace(events.rank, std::move(tasks));
    }
    /// By rank.
    std::vector<RankTasks> all() && {
        std::vector<RankTasks> ranks;
        for (auto& [rank, tasks] : m_ranks) ranks.push_back(std::move(tasks));
        return ranks;
    }

  private:
    const TraceFacts& m_facts;  // those of phase 1
    const ReplayWindow m_window;
    std::mutex m_mutex;  // guards m_ranks
    std::map<int, RankTasks> m_ranks;
};

TraceFacts readFacts(const std::filesystem::path& database) {
    store::TraceReader trace(database);
    return readTraceFacts(trace);
}

ReplayWindow readWindow(const std::filesystem::path& database, const TraceFacts& facts) {
    store::TraceReader trace(database);
    return replayWindow(trace, facts);
}

}  // namespace

Analysis readAnalysis(const std::filesystem::path& database, unsigned workers, std::optional<StepOverview>* overview,
                      const LinkSources& links) {
    // Phase 1: each rank for itself, one rank's events in memory per worker.
    TraceFacts facts = readFacts(database);
    const ReplayWindow window = readWindow(database, facts);
    ReplayTasks tasks(facts, window);
    StepOverviewPainter painter(facts);
    std::vector<RankSummary> ranks = summarizeRanks(database, facts, workers, [&](const RankEvents& events) {
        tasks.take(events);
        if (overview != nullptr) painter.take(events);
    });
    if (overview != nullptr) *overview = std::move(painter).finish();

    // Phase 2: what the ranks did to each other.
    Analysis analysis = makeAnalysis(std::move(facts), std::move(ranks), links);
    analysis.replay = replay(analysis.facts, std::move(tasks).all(), analysis.steps, window);
    analysis.delays = delaysOf(analysis, analysis.replay);
    return analysis;
}

Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options) {
    const std::filesystem::path database = store::TraceReader::databasePath(trace);
    std::optional<StepOverview> overview;
    const Analysis analysis =
        readAnalysis(database, options.workers, options.overview ? &overview : nullptr, options.links);
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
