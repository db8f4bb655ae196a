// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "analyzer/compare/renderers.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/table.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {

namespace {

using namespace report::html;

constexpr size_t kMostRanks = 128;  // of the breakdown: a page is for reading
constexpr size_t kLongPlace = 20;   // longer ones are broken where they must be

/// Returns the ranks that the change is laid to, where that is not all of them.
std::vector<int> namedRanks(const Comparison& c) {
    std::set<int> ranks;
    const auto take = [&](const std::vector<int>& some) {
        if (c.breakdown.empty() || some.size() < c.breakdown.size()) ranks.insert(some.begin(), some.end());
    };
    for (const ChangeCause& cause : c.causes) take(cause.ranks);
    for (const FindingChange& finding : c.findings)
        if (finding.status != FindingStatus::same) take(finding.ranks);
    return {ranks.begin(), ranks.end()};
}

std::string bar(const BreakdownSide& side, double wholeNs) {
    const auto part = [](const char* colour, const char* name, double ns) {
        return Part{colour, fmt::format("{} {}", name, text::durationText(ns)), ns};
    };
    return stackedBar({part("compute", "compute", side.computeNs - side.overlappedCommNs),
                       part("overlapped", "compute with hidden communication", side.overlappedCommNs),
                       part("transfer", "exposed transfer", side.exposedTransferNs),
                       part("wait", "exposed waiting", side.exposedWaitNs), part("memory", "copies", side.memoryNs),
                       part("idle", "idle", side.idleNs)},
                      wholeNs);
}

/// Returns all ranks where they are few; else those that the change is laid to, and the first of the others.
std::vector<const BreakdownChange*> shownRanks(const Comparison& c) {
    const std::vector<int> named = namedRanks(c);
    std::vector<const BreakdownChange*> rows;
    for (const BreakdownChange& row : c.breakdown) rows.push_back(&row);
    if (rows.size() <= kMostRanks) return rows;
    std::ranges::stable_partition(
        rows, [&](const BreakdownChange* row) { return std::ranges::binary_search(named, row->rank); });
    rows.resize(kMostRanks);
    std::ranges::sort(rows, {}, [](const BreakdownChange* row) { return row->rank; });
    return rows;
}

/// Puts names under the columns of the runs, where there is room for them; else of the two sides.
std::vector<std::pair<double, std::string>> columnNames(const std::vector<const ComparedRun*>& runs, size_t baseRuns) {
    constexpr size_t kRoom = 66;  // letters below the axis, with gaps between the names
    size_t longest = 0;
    for (const ComparedRun* run : runs) longest = std::max(longest, run->name.size() + 2);
    std::vector<std::pair<double, std::string>> names;
    if (longest * runs.size() <= kRoom) {
        for (size_t i = 0; i < runs.size(); ++i) names.emplace_back(i, runs[i]->name);
        return names;
    }
    const size_t newRuns = runs.size() - baseRuns;
    const auto addSide = [&](const char* name, size_t first, size_t count) {
        if (count > 0)
            names.emplace_back(static_cast<double>(first) + static_cast<double>(count - 1) / 2,
                               count == 1 ? name : fmt::format("{}: {} runs", name, count));
    };
    addSide("base", 0, baseRuns);
    addSide("new", baseRuns, newRuns);
    return names;
}

}  // namespace

std::string stepsChart(const Comparison& c) {
    constexpr size_t kMostBaseRuns = 200,
                     kMostSteps = 3000;        // drawn: more cannot be told apart, and make the page slow
    constexpr size_t kRunsOfWideColumns = 16;  // points of more runs are drawn smaller
    const size_t firstBase = c.base.runs.size() - std::min(kMostBaseRuns, c.base.runs.size());
    std::vector<const ComparedRun*> runs;
    for (size_t i = firstBase; i < c.base.runs.size(); ++i) runs.push_back(&c.base.runs[i]);
    const size_t baseRuns = runs.size();
    for (size_t i = 0; i < std::min(kMostBaseRuns, c.now.runs.size()); ++i) runs.push_back(&c.now.runs[i]);
    if (runs.empty()) return {};

    Chart chart{
        "Steps of each run",        {"run", false, nullptr}, {"step", false, millisecondsText}, {}, {}, {}, false,
        columnNames(runs, baseRuns)};
    const size_t mostOfARun = std::max<size_t>(1, kMostSteps / runs.size());
    for (size_t column = 0; column < runs.size(); ++column) {
        const ComparedRun& run = *runs[column];
        const char* side = column < baseRuns ? "base" : "new";
        const size_t stride = (run.stepsNs.size() + mostOfARun - 1) / mostOfARun;
        for (size_t i = 0; i < run.stepsNs.size(); i += stride) {
            const double spread =
                0.5 * (static_cast<double>(i / stride % 7) / 7 - 0.43);  // so that equal ones do not hide each other
            const std::string which = run.stepsPerSample > 1 ? fmt::format("mean of {} steps", run.stepsPerSample)
                                                             : fmt::format("step {}", i + 1);
            chart.dots.push_back(
                {static_cast<double>(column) + spread, run.stepsNs[i],
                 fmt::format("{} run {}, {}: {}", side, run.name, which, text::durationText(run.stepsNs[i])), "warm",
                 runs.size() > kRunsOfWideColumns ? 1.5 : 3});
        }
    }
    for (size_t column = 0; column < runs.size(); ++column)
        chart.dots.push_back({static_cast<double>(column), runs[column]->stepNs,
                              fmt::format("{} run {}: {}", column < baseRuns ? "base" : "new", runs[column]->name,
                                          text::durationText(runs[column]->stepNs)),
                              column < baseRuns ? "compute" : "transfer",
                              runs.size() > kRunsOfWideColumns ? 4.0 : 5.0});
    if (c.step.baseNs) chart.levels.emplace_back(*c.step.baseNs, "base " + text::durationText(*c.step.baseNs));
    if (c.step.newNs && c.step.ratio && std::abs(*c.step.ratio - 1) > 0.002)
        chart.levels.emplace_back(*c.step.newNs, "new " + text::durationText(*c.step.newNs));
    std::string hint = "A grey point is a step, a coloured one a run's typical step. The axis does not begin at zero.";
    if (firstBase > 0) hint += fmt::format(" The last {} of {} base runs are drawn.", baseRuns, c.base.runs.size());
    return section("steps", "Steps of each run", hint,
                   legend({{"compute", "base"}, {"transfer", "new"}, {"warm", "single steps"}}) + drawChart(chart));
}

std::string overviewPictures(const Comparison& c) {
    const auto lengthNs = [](const ComparedSide& side) {
        return side.overview && !side.overview->lanes.empty() ? side.overview->endNs - side.overview->startNs : 0;
    };
    const int64_t spanNs = std::max(lengthNs(c.base), lengthNs(c.now));
    if (spanNs <= 0) return {};
    const std::vector<int> named = namedRanks(c);
    std::string out = lanesLegend();
    const auto add = [&](const char* name, const ComparedSide& side) {
        if (side.runs.empty()) return;
        if (lengthNs(side) <= 0) {
            out += fmt::format(
                "<h3>{}</h3><p class=\"hint\">A saved run keeps no timeline: give the run itself to see it here.</p>\n",
                name);
            return;
        }
        out += "<h3>" + text::markupText(fmt::format("{}: {}, step {}", name, side.overviewRun, side.overview->step)) +
               "</h3>\n" + drawLanes(*side.overview, named, spanNs);
    };
    add("base", c.base);
    add("new", c.now);
    return section("overview", "One step of every rank",
                   "The step of median length of a typical run; one scale. Upper band: the device; lower band: "
                   "communication. Ranks that the change is laid to are marked.",
                   out);
}

std::string breakdownBars(const Comparison& c) {
    if (c.breakdown.empty()) return {};
    double longest = 0;
    for (const BreakdownChange& row : c.breakdown)
        longest = std::max({longest, row.base ? row.base->stepNs : 0, row.now ? row.now->stepNs : 0});
    if (longest <= 0) return {};
    const bool hasBase = !c.base.runs.empty();
    std::vector<Column> columns{{"rank", true}, {"place"}, {hasBase ? "step: base above new" : "step", false, true}};
    for (const char* part : {"compute", "waiting", "transfer", "idle"}) {
        if (hasBase) columns.push_back({fmt::format("{}, base", part), true});
        columns.push_back({hasBase ? fmt::format("{}, new", part) : part, true});
    }
    Table table("breakdown-table", columns);
    const std::vector<const BreakdownChange*> shown = shownRanks(c);
    for (const BreakdownChange* row : shown) {
        std::vector<Cell> cells{
            numberCell(std::to_string(row->rank), row->rank),
            row->role.size() <= kLongPlace ? unbrokenCell(row->role) : textCell(row->role),
            markupCell((row->base ? bar(*row->base, longest) : "") + (row->now ? bar(*row->now, longest) : ""))};
        for (double BreakdownSide::*part : {&BreakdownSide::computeNs, &BreakdownSide::exposedWaitNs,
                                            &BreakdownSide::exposedTransferNs, &BreakdownSide::idleNs}) {
            const auto cell = [&](const std::optional<BreakdownSide>& side) {
                return side ? numberCell(text::durationText((*side).*part), (*side).*part) : unknownCell();
            };
            if (hasBase) cells.push_back(cell(row->base));
            cells.push_back(cell(row->now));
        }
        table.add(cells);
    }
    std::string out = stepPartsLegend() + table.markup();
    if (shown.size() < c.breakdown.size())
        out += fmt::format(
            "<p class=\"hint\">{} of {} ranks are shown, with those that the change is laid to; the JSON below has "
            "all.</p>\n",
            shown.size(), c.breakdown.size());
    return section("breakdown", "Where the time goes",
                   "Per step, means over the runs of a side; ranks matched by their place in the layout.", out);
}

}  // namespace rankscope::compare
