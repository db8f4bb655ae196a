// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/html/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/table.h"
#include "analyzer/report/memory.h"
#include "analyzer/report/sentences.h"
#include "analyzer/report/volume.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report::html {
namespace {

// Of a table: its largest row, a rank's with the bar of its step, is 1.1 kB of the page, so that 512 are half a
// megabyte, which opens at once. The page holds all as data.
constexpr size_t kMostRows = 512;

std::string wholeNumber(double value) {
    return value == std::round(value) ? fmt::format("{:.0f}", value) : std::string();
}
std::string gigabytes(double bytesPerSecond) {
    return fmt::format("{:g} GB/s", bytesPerSecond / 1e9);
}

/// Of a line that begins small and has no full stop.
std::string paragraph(std::string line) {
    if (!line.empty() && line.front() >= 'a' && line.front() <= 'z')
        line.front() = static_cast<char>(line.front() - 'a' + 'A');
    return "<p>" + text::markupText(line) + ".</p>\n";
}

}  // namespace

std::string breakdownSection(const Report& r) {
    if (r.breakdown.empty() || r.run.stepNs <= 0) return {};
    Table table("breakdown-table", {{"rank", true},
                                    {"host"},
                                    {"share of the step", false, true},
                                    {"compute %", true},
                                    {"waiting %", true},
                                    {"transfer %", true},
                                    {"copies %", true},
                                    {"idle %", true},
                                    {"hidden comm %", true}});
    for (const BreakdownRow& row : text::first(r.breakdown, kMostRows)) {
        const facts::Attribution& a = row.total;
        const auto step = static_cast<double>(std::max<int64_t>(1, a.stepNs));
        const auto share = [&](int64_t ns, const char* sign = "") {
            const double percent = 100 * static_cast<double>(ns) / step;
            return numberCell(fmt::format("{}{:.1f}", sign, percent), percent);
        };
        const auto part = [&](const char* colour, const char* name, int64_t ns) {
            return Part{colour, fmt::format("{} {}", name, text::percentText(static_cast<double>(ns) / step)),
                        static_cast<double>(ns)};
        };
        table.add(
            {numberCell(std::to_string(row.rank), row.rank), textCell(row.host),
             markupCell(stackedBar(
                 {part("compute", "compute", a.computeNs - a.overlappedCommNs),
                  part("overlapped", "compute with hidden communication", a.overlappedCommNs),
                  part("transfer", row.splitKnown ? "exposed transfer" : "exposed communication, waiting or transfer",
                       row.splitKnown ? a.exposedTransferNs : a.exposedCommNs()),
                  part("wait", "exposed waiting", row.splitKnown ? a.exposedWaitNs : 0),
                  part("memory", "copies", a.memoryNs), part("idle", "idle", a.idleNs)},
                 step)),
             share(a.computeNs), row.splitKnown ? share(a.exposedWaitNs) : unknownCell(),
             row.splitKnown ? share(a.exposedTransferNs) : share(a.exposedCommNs(), "≤ "), share(a.memoryNs),
             share(a.idleNs), share(a.overlappedCommNs)});
    }
    std::string out = stepPartsLegend() + table.markup();
    if (r.breakdown.size() > kMostRows)
        out += fmt::format("<p class=\"hint\">The first {} of {} ranks; the JSON below has all.</p>\n", kMostRows,
                           r.breakdown.size());
    for (const std::string& line : delayLines(r)) out += "<p>" + text::markupText("Late ranks: " + line) + ".</p>\n";
    return section("breakdown", "Where the time goes",
                   "Of the analysed steps. Compute, waiting, transfer, copies and idle add up to the step.", out);
}

std::string memorySection(const Report& r) {
    if (r.memory.empty()) return {};
    Table table("memory-table", {{"rank", true}, {"peak", true}, {"of", true}, {"left", true}, {"told by"}});
    const auto bytes = [](const std::optional<int64_t>& count) {
        return count ? numberCell(text::bytesText(static_cast<double>(*count)), static_cast<double>(*count))
                     : unknownCell();
    };
    for (const MemoryRow& row : text::first(r.memory, kMostRows))
        table.add({numberCell(std::to_string(row.rank), row.rank), bytes(peakOf(row)), bytes(row.deviceBytes),
                   bytes(marginOf(row)), textCell(std::string(sourceOf(row)))});
    std::string summary = memoryText(r.memory);
    summary = "Of the device" + summary.substr(summary.find(": ")) + ".";
    std::string out = "<details><summary>Memory of each rank</summary>\n" + table.markup() + "</details>\n";
    if (r.memory.size() > kMostRows)
        out += fmt::format("<p class=\"hint\">The first {} of {} ranks; the JSON below has all.</p>\n", kMostRows,
                           r.memory.size());
    if (const std::string states = statesText(r.volumes, r.memory); !states.empty()) out = paragraph(states) + out;
    return section("memory", "Memory", summary, out);
}

std::string stepSection(const Report& r) {
    if (r.steps.size() < 2) return {};
    Chart chart{
        "Duration of each step", {"step", false, wholeNumber}, {"duration", false, millisecondsText}, {}, {}, {}, true};
    std::vector<Point> curve;
    for (const StepRow& step : r.steps) {
        const auto ns = static_cast<double>(step.durNs);
        curve.push_back({static_cast<double>(step.index), ns, "", ""});
        if (r.steps.size() <= 400)
            chart.dots.push_back(
                {static_cast<double>(step.index), ns,
                 fmt::format("step {}: {}{}", step.index, text::durationText(ns), step.warmUp ? ", warm-up" : ""),
                 step.warmUp ? "warm" : "compute"});
    }
    chart.curves = {curve};
    if (r.run.stepNs > 0) chart.levels = {{r.run.stepNs, "step " + text::durationText(r.run.stepNs)}};
    return section("steps", "Step times",
                   "Points: the time of the rank that takes longest, from its start of the step to its end; warm-up is "
                   "grey. Line: the median.",
                   drawChart(chart));
}

std::string bandwidthSection(const Report& r) {
    Chart chart{"Bus bandwidth by message size",
                {"message", true, text::bytesText},
                {"bus bandwidth", false, gigabytes},
                {},
                {},
                {},
                true};
    for (const CollectiveRow& row : r.collectives) {
        if (!row.busbw || !row.bytes || row.count <= 0 || *row.bytes <= 0) continue;
        const double bytes = static_cast<double>(*row.bytes) / static_cast<double>(row.count);
        chart.dots.push_back({bytes, *row.busbw,
                              fmt::format("{} of {}, {}, {} a step: {}", row.op, text::bytesText(bytes), row.group,
                                          countText(row.countPerStep), text::bandwidthText(*row.busbw)),
                              row.op == "all_reduce"       ? "compute"
                              : row.op == "all_gather"     ? "overlapped"
                              : row.op == "reduce_scatter" ? "transfer"
                              : row.op == "all_to_all"     ? "wait"
                                                           : "memory"});
    }
    if (chart.dots.empty()) return {};
    std::vector<Part> seen;
    for (const Part& part : {Part{"compute", "all-reduce"}, Part{"overlapped", "all-gather"},
                             Part{"transfer", "reduce-scatter"}, Part{"wait", "all-to-all"}, Part{"memory", "others"}})
        if (std::ranges::count(chart.dots, part.colour, &Point::colour) > 0) seen.push_back(part);
    return section("bandwidth", "Bandwidth of collectives",
                   "Each point is a communicator, operation and size class; what waiting took is left out.",
                   legend(seen) + drawChart(chart));
}

std::string efficienciesSection(const Report& r) {
    if (!r.efficiency.parallel) return {};
    std::vector<Bar> bars;
    const auto add = [&](const char* label, const std::optional<double>& share, const char* colour) {
        if (share) bars.push_back({label, text::percentText(*share), *share, colour});
    };
    add("parallel efficiency", r.efficiency.parallel, "compute");
    add("load balance", r.efficiency.loadBalance, "overlapped");
    add(r.efficiency.transfer ? "serialisation" : "rest", r.efficiency.serialisation, "overlapped");
    add("transfer", r.efficiency.transfer, "overlapped");
    return section(
        "efficiency", "Efficiency",
        "The first is the product of the others: what unequal ranks, dependences and the network leave of it.",
        barChart("Efficiencies", bars, 1));
}

std::string criticalPathSection(const Report& r) {
    std::vector<Bar> bars;
    double whole = 0;
    for (const auto& [category, ns] : r.replay.criticalPathNs) whole += ns;
    for (const auto& [category, ns] : r.replay.criticalPathNs)
        if (whole > 0 && ns > 0)
            bars.push_back({category, fmt::format("{} ({})", text::percentText(ns / whole), text::durationText(ns)), ns,
                            category == "compute"    ? "compute"
                            : category == "transfer" ? "transfer"
                            : category == "memory"   ? "memory"
                                                     : "wait"});
    if (bars.empty()) return {};
    std::ranges::stable_sort(bars, std::greater{}, &Bar::value);
    return section("critical-path", "Critical path",
                   "What the chain of work through all ranks that sets the step time consists of.",
                   barChart("Critical path", bars, whole));
}

std::string idleSection(const Report& r) {
    std::vector<Bar> bars;
    for (const auto& [words, share] : idleShares(r)) bars.push_back({words, text::percentText(share), share, "wait"});
    if (bars.empty()) return {};
    return section("idle", "Why devices idle", "Of the step, all ranks together.",
                   barChart("Idle time by cause", bars));
}

std::string collectivesSection(const Report& r) {
    std::string volumes;
    for (const VolumeRow& row : r.volumes) volumes += paragraph(volumeText(row));
    if (r.collectives.empty()) return volumes.empty() ? volumes : section("messages", "Messages", "", volumes);
    Table table("collectives-table", {{"operation"},
                                      {"size"},
                                      {"group"},
                                      {"calls", true},
                                      {"bytes", true},
                                      {"waiting", true},
                                      {"transfer", true},
                                      {"busbw", true},
                                      {"algorithm"},
                                      {"most often last"}});
    const auto known = [](const auto& value, auto&& text) {
        return value ? numberCell(text(static_cast<double>(*value)), static_cast<double>(*value)) : unknownCell();
    };
    for (const CollectiveRow& row : text::first(r.collectives, kMostRows)) {
        Cell size = unbrokenCell(row.sizeClass);
        size.value = row.bytes && row.count > 0 ? std::optional(std::to_string(*row.bytes / row.count)) : std::nullopt;
        table.add(
            {textCell(row.op), size, row.group.empty() ? unknownCell() : textCell(row.group),
             numberCell(countText(row.countPerStep), row.countPerStep), known(row.bytesPerStep, text::bytesText),
             known(row.waitNsPerRankStep, text::durationText), known(row.transferNsPerRankStep, text::durationText),
             known(row.busbw, text::bandwidthText),
             row.algorithm.empty() && row.protocol.empty()
                 ? unknownCell()
                 : textCell(fmt::format("{} {}", row.algorithm.empty() ? "unknown" : row.algorithm, row.protocol)),
             row.lastRanks.empty() ? unknownCell() : unbrokenCell(lastText(row, 1))});
    }
    std::string out = table.markup();
    if (r.collectives.size() > kMostRows)
        out += fmt::format("<p class=\"hint\">The first {} of {} kinds; the JSON below has all.</p>\n", kMostRows,
                           r.collectives.size());
    out += volumes;
    return section("collectives", "Collectives",
                   "Per rank and step; waiting and transfer hold what is hidden behind compute, too.", out);
}

}  // namespace rankscope::report::html
