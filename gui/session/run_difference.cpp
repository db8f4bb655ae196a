// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/plain_text.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

struct Cancelled {};

compare::RunSummary summaryOf(const RunInfo& run, const std::atomic<bool>& cancelled) {
    compare::RunSummary summary = compare::summarizeTrace(run.file, 0, [&] {
        if (cancelled) throw Cancelled();
    });
    if (summary.name.empty()) summary.name = run.name;
    return summary;
}

void placeInRun(const RunInfo& run, const std::vector<compare::FindingChange>& findings,
                std::optional<size_t> FindingPlaces::*side, compare::FindingSide compare::FindingChange::*of,
                std::vector<FindingPlaces>& places) {
    std::set<size_t> taken;
    const auto find = [&](const compare::FindingChange& finding, bool byRanks) -> std::optional<size_t> {
        for (size_t i = 0; i < run.findings.size(); ++i) {
            const FindingInfo& found = run.findings[i];
            if (found.verdict == "found" && found.diagnosis == finding.id && !taken.contains(i) &&
                (!byRanks || std::ranges::is_permutation(found.ranks, finding.ranks)))
                return i;
        }
        return std::nullopt;
    };
    for (const bool byRanks : {true, false})
        for (size_t i = 0; i < findings.size(); ++i) {
            if ((findings[i].*of).runs == 0 || places[i].*side) continue;
            places[i].*side = find(findings[i], byRanks);
            if (places[i].*side) taken.insert(*(places[i].*side));
        }
}

TimeRange analysedTime(const RunInfo& run) {
    TimeRange time{INT64_MAX, INT64_MIN};
    for (const StepInfo& step : run.steps)
        if (!step.warmUp) time = {std::min(time.beginNs, step.range.beginNs), std::max(time.endNs, step.range.endNs)};
    return time.beginNs < time.endNs ? time : run.whole;
}

// By their names in a comparison.
std::map<std::string, EventLink> longestKernels(const RunInfo& run) {
    store::TraceReader reader(run.file, {}, store::MisplacedRows::kept);
    const TimeRange time = analysedTime(run);
    // SQLite takes the other columns of a row with max() from the row that has it.
    store::Statement query(reader.database(),
                           "SELECT name_id, id, rank, max(dur_ns) AS ns FROM kernel WHERE start_ns >= ?1 AND start_ns "
                           "< ?2 AND nccl = 0 GROUP BY name_id ORDER BY ns DESC LIMIT 20000");
    query.bind(1, time.beginNs).bind(2, time.endNs);
    std::map<std::string, EventLink> longest;
    while (query.step()) {
        const auto name = static_cast<uint64_t>(query.integer(0));
        if (name < run.strings.size())
            longest.try_emplace(
                text::readableKernelName(run.strings[name]),
                EventLink{EventTable::kernel, query.integer(1), static_cast<int32_t>(query.integer(2))});
    }
    return longest;
}

}  // namespace

RunDifference differenceOf(const RunInfo& a, const RunInfo& b, const std::atomic<bool>& cancelled) try {
    RunDifference difference;
    compare::Comparison& comparison = difference.comparison;
    compare::RunSummary base = summaryOf(a, cancelled);
    comparison = compare::compareRuns({std::move(base)}, {summaryOf(b, cancelled)}, {});
    difference.findings = findPlaces(comparison, a, b);
    const std::map<std::string, EventLink> ofA = longestKernels(a), ofB = longestKernels(b);
    for (const compare::KernelChange& kernel : comparison.kernels) {
        const auto inA = ofA.find(kernel.name), inB = ofB.find(kernel.name);
        difference.kernels.push_back(
            {inA == ofA.end() ? EventLink{} : inA->second, inB == ofB.end() ? EventLink{} : inB->second});
    }
    for (const auto& [letter, run] : {std::pair{"A", &a}, std::pair{"B", &b}})
        if (!run->analyzed)
            difference.remarks.push_back(
                fmt::format("{} is not analysed, its findings cannot be shown: rankscope "
                            "analyze {}",
                            letter, displayText(run->name)));
    return difference;
} catch (const Cancelled&) {
    return {};
}

std::vector<FindingPlaces> findPlaces(const compare::Comparison& comparison, const RunInfo& a, const RunInfo& b) {
    std::vector<FindingPlaces> places(comparison.findings.size());
    placeInRun(a, comparison.findings, &FindingPlaces::inA, &compare::FindingChange::base, places);
    placeInRun(b, comparison.findings, &FindingPlaces::inB, &compare::FindingChange::now, places);
    return places;
}

std::string headText(const RunDifference& difference) {
    constexpr size_t kLongest = 1000, kMostLines = 8;  // of each kind; the clipboard gets all
    const compare::Comparison& comparison = difference.comparison;
    std::string text = displayText(comparison.step.reason, kLongest);
    const auto add = [&](const std::string& line) { text += "\n" + displayText(line, kLongest); };
    if (!comparison.causes.empty()) add(compare::causesHeading(comparison) + ":");
    for (size_t i = 0; i < std::min(kMostLines, comparison.causes.size()); ++i) {
        const compare::ChangeCause& cause = comparison.causes[i];
        add(fmt::format("{}  {}{}", compare::signedDurationText(cause.ns), cause.text,
                        cause.diagnosis.empty() ? "" : " [" + cause.diagnosis + "]"));
    }
    for (size_t i = 0; i < std::min(kMostLines, comparison.incomparable.size()); ++i) {
        const compare::Incomparable& row = comparison.incomparable[i];
        add(fmt::format("{}: {} and {}; {}", row.what, row.base, row.now, row.consequence));
    }
    for (size_t i = 0; i < std::min(kMostLines, comparison.notes.size()); ++i) add(comparison.notes[i]);
    for (const std::string& remark : difference.remarks) add(remark);
    return text;
}

}  // namespace rankscope::gui
