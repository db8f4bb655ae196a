// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/charts/series/pipeline_chains.h"
#include "gui/session/column_text.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

using store::Statement;

// Of several stages a rank is in the one of the first chain that holds it.
std::map<int32_t, std::string> stagesOf(store::TraceReader& reader) {
    std::map<int32_t, std::string> stages;
    for (const PipelineChain& chain : findPipelines(readMessagePairs(reader, readChartJob(reader))))
        for (size_t stage = 0; stage < chain.size(); ++stage)
            stages.try_emplace(chain[stage], fmt::format("stage {} of {}", stage + 1, chain.size()));
    return stages;
}

// Sums as real numbers, so that the rows of a damaged file cannot overflow.
struct Sums {
    double rows = 0, step = 0, overlapped = 0;
    std::array<double, kStepParts> parts{};
    std::map<std::string, double> causes;
    std::vector<int32_t> ranks;

    StepBreakdown mean() const {
        StepBreakdown mean;
        const double count = std::max(1.0, rows);
        const auto ns = [count](double sum) { return static_cast<int64_t>(std::clamp(sum / count, -4e18, 4e18)); };
        mean.stepNs = ns(step);
        mean.overlappedNs = ns(overlapped);
        for (size_t part = 0; part < kStepParts; ++part) mean.parts[part] = ns(parts[part]);
        for (const auto& [cause, sum] : causes) mean.idleCauses[cause] = ns(sum);
        mean.ranks = ranks;
        return mean;
    }
};

struct Places {
    RunSummary& summary;
    std::map<int32_t, std::string> stages;
    Sums all;
    std::map<std::string, Sums> roles;
    std::map<int32_t, Sums> ranks;

    template <typename Add>
    void add(int32_t rank, Add&& change) {
        change(all);
        change(ranks[rank]);
        if (const auto stage = stages.find(rank); stage != stages.end()) change(roles[stage->second]);
    }
};

void readAttribution(store::TraceReader& reader, Places& places) {
    Statement query(reader.database(),
                    "SELECT a.rank, a.step_ns, a.compute_ns, a.exposed_wait_ns, a.exposed_transfer_ns, a.memory_ns, "
                    "a.idle_ns, a.overlapped_comm_ns FROM attribution a JOIN step s ON s.rank = a.rank AND s.step = "
                    "a.step WHERE s.warm_up = 0 ORDER BY a.rank");
    while (query.step()) {
        const auto rank = static_cast<int32_t>(query.integer(0));
        places.add(rank, [&](Sums& sums) {
            sums.rows += 1;
            sums.step += query.real(1);
            for (size_t part = 0; part < kStepParts; ++part) sums.parts[part] += query.real(static_cast<int>(2 + part));
            sums.overlapped += query.real(7);
            if (sums.ranks.empty() || sums.ranks.back() != rank) sums.ranks.push_back(rank);
        });
    }
}

void readIdleCauses(store::TraceReader& reader, Places& places) {
    Statement query(reader.database(),
                    "SELECT g.rank, g.cause, total(g.dur_ns) FROM idle_gap g JOIN step s ON s.rank = g.rank AND s.step "
                    "= g.step WHERE s.warm_up = 0 GROUP BY g.rank, g.cause LIMIT 1000000");
    while (query.step())
        places.add(static_cast<int32_t>(query.integer(0)),
                   [&](Sums& sums) { sums.causes[std::string(query.text(1))] += query.real(2); });
}

// The steps that are analysed: their number, what the slowest rank of each takes, and from where to where they are.
TimeRange readSteps(const RunInfo& run, RunSummary& summary) {
    std::map<int32_t, int64_t> longest;
    TimeRange window{INT64_MAX, INT64_MIN};
    for (const StepInfo& step : run.steps) {
        if (step.warmUp) continue;
        int64_t& ns = longest.try_emplace(step.step, 0).first->second;
        ns = std::max(ns, step.range.span());
        window = {std::min(window.beginNs, step.range.beginNs), std::max(window.endNs, step.range.endNs)};
    }
    summary.steps = longest.size();
    std::vector<int64_t> times;
    for (const auto& [step, ns] : longest) times.push_back(ns);
    if (times.empty()) return run.whole;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    summary.medianStepNs = times[times.size() / 2];
    return window;
}

void readKernels(store::TraceReader& reader, const RunInfo& run, TimeRange window, RunSummary& summary) {
    // SQLite takes the other columns of a row with max() from the row that has it.
    Statement query(reader.database(),
                    "SELECT name_id, nccl != 0, count(*), total(dur_ns) AS ns, id, rank, max(dur_ns) FROM kernel WHERE "
                    "start_ns >= ?1 AND start_ns < ?2 GROUP BY name_id, nccl != 0 ORDER BY ns DESC LIMIT 20000");
    query.bind(1, window.beginNs).bind(2, window.endNs);
    const double shares = std::max(1.0, static_cast<double>(summary.steps)) *
                          std::max(1.0, static_cast<double>(run.outline.ranks.size()));
    while (query.step())
        summary.kernels.push_back({stringText(run, query.integer(0)),
                                   query.integer(1) != 0,
                                   static_cast<int64_t>(std::min(4e18, query.real(3) / shares)),
                                   query.real(2) / shares,
                                   {EventTable::kernel, query.integer(4), static_cast<int32_t>(query.integer(5))}});
}

}  // namespace

const char* nameOf(StepPart part) noexcept {
    switch (part) {
        case StepPart::compute:
            return "compute";
        case StepPart::waiting:
            return "waiting";
        case StepPart::transfer:
            return "transfer";
        case StepPart::memory:
            return "copies";
        case StepPart::idle:
            return "idle";
    }
    return "";
}

RunSummary readRunSummary(store::TraceReader& reader, const RunInfo& run) {
    RunSummary summary;
    summary.name = displayText(run.name);
    const TimeRange window = readSteps(run, summary);
    Places places{summary, stagesOf(reader), {}, {}, {}};
    readAttribution(reader, places);
    readIdleCauses(reader, places);
    summary.all = places.all.mean();
    for (const auto& [role, sums] : places.roles) summary.roles[role] = sums.mean();
    for (const auto& [rank, sums] : places.ranks) summary.ranks[rank] = sums.mean();
    readKernels(reader, run, window, summary);
    return summary;
}

}  // namespace rankscope::gui
