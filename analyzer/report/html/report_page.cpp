// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/report/collective_table.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/finding_card.h"
#include "analyzer/report/html/lanes.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/table.h"
#include "analyzer/report/layout_text.h"
#include "analyzer/report/loss_text.h"
#include "analyzer/report/lost_time_text.h"
#include "analyzer/report/nothing_found.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/replay_text.h"
#include "analyzer/report/run_text.h"
#include "analyzer/report/unexplained_text.h"
#include "analyzer/report/verdict_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using namespace html;

std::string milliseconds(double ns) {
    return fmt::format("{:g} ms", ns / 1e6);
}
std::string wholeNumber(double value) {
    return value == std::round(value) ? fmt::format("{:.0f}", value) : std::string();
}
std::string gigabytes(double bytesPerSecond) {
    return fmt::format("{:g} GB/s", bytesPerSecond / 1e9);
}

std::vector<int> namedRanks(const Report& report) {
    std::set<int> ranks;
    for (const job::Finding& finding : report.findings)
        if (finding.ranks.size() < report.breakdown.size()) ranks.insert(finding.ranks.begin(), finding.ranks.end());
    return {ranks.begin(), ranks.end()};
}

std::string tiles(const Report& r) {
    std::string out = "<dl class=\"tiles\">\n";
    if (r.run.stepNs > 0)
        out += tile("Step", text::durationText(r.run.stepNs),
                    r.run.steps > 0 ? fmt::format("median of {}, {} warm-up left out", r.run.steps, r.run.warmUpSteps)
                                    : "the whole recording as one");
    if (r.replay.ceiling)
        out += tile(
            "Repairs save", text::percentText(r.replay.ceiling->share),
            fmt::format("{} of each step, replayed at once", text::durationText(r.replay.ceiling->savingNs.expected)));
    if (r.efficiency.parallel)
        out += tile("Parallel efficiency", text::percentText(*r.efficiency.parallel),
                    "compute of the mean rank in the step");
    const size_t all = static_cast<size_t>(r.run.worldSize.value_or(static_cast<int>(r.run.ranks.size())));
    out +=
        tile("Ranks", r.run.ranks.size() < all ? fmt::format("{} of {}", r.run.ranks.size(), all) : std::to_string(all),
             ranksOnHostsText(r.run));
    out += tile("Replay error", r.replay.error ? fmt::format("{:.2f} %", 100 * *r.replay.error) : "none",
                r.replay.error ? "the unchanged job played again" : "no replay");
    if (r.run.hosts.size() > 1)
        out += tile("Clock bound", boundText(r.clock.boundNs), "clocks aligned by " + r.clock.method);
    int64_t lost = 0;
    for (const LossRow& loss : r.losses) lost += loss.severity != "info";
    out += tile("Missing records", lost == 0 ? "none" : std::to_string(lost),
                lost == 0 ? "everything asked for was recorded" : "kinds of loss, listed below");
    return out + "</dl>\n";
}

std::string losses(const Report& r) {
    if (r.losses.empty()) return {};
    constexpr size_t kMost = 50;
    std::string out = "<ul class=\"losses\" aria-label=\"What is missing from the recording\">\n";
    const std::vector<LossLine> lines = lossLines(r.losses);
    for (size_t i = 0; i < std::min(kMost, lines.size()); ++i)
        out += fmt::format("<li class=\"{}\"><b>{}</b>: {}</li>\n", text::markupText(lines[i].severity),
                           text::markupText(lines[i].severity), text::markupText(lines[i].text));
    if (lines.size() > kMost)
        out += fmt::format("<li>and {} more: <code>--format json</code> lists them</li>\n", lines.size() - kMost);
    return out + "</ul>\n";
}

std::string findings(const Report& r, size_t all) {
    std::string out;
    if (r.findings.empty()) out = "<p>" + text::markupText(nothingFoundText(r)) + "</p>\n";
    for (const std::string& fact : unexplainedFacts(r.accounting))
        out += "<p>" + text::markupText("Known of what is not explained: " + fact) + ".</p>\n";
    for (const job::Finding& finding : r.findings) out += findingCard(r, finding);
    if (all > r.findings.size())
        out += fmt::format(
            "<p id=\"findings-left-out\"><b>{} of {} findings are shown</b>, those that cost most; <code>rankscope "
            "analyze --format json</code> lists all.</p>\n",
            r.findings.size(), all);
    return section("findings", "Findings",
                   r.findings.empty()
                       ? ""
                       : "By what their repair saves. What costs under 3 % of the step is a note, further down.",
                   out);
}

std::string overviewSection(const Report& r) {
    if (!r.overview || r.overview->lanes.empty() || r.run.stepNs <= 0) return {};
    const std::string what =
        r.run.steps > 0 ? fmt::format("Step {}, the one of median length", r.overview->step) : "The whole recording";
    return section("overview", "One step of every rank",
                   what + ". Upper band: the device; lower band: communication. Ranks that a finding names are marked.",
                   lanesLegend() + drawLanes(*r.overview, namedRanks(r)));
}

std::string breakdown(const Report& r) {
    if (r.breakdown.empty() || r.run.stepNs <= 0) return {};
    Table table("breakdown-table", "",
                {{"rank", true},
                 {"host"},
                 {"share of the step", false, true},
                 {"compute %", true},
                 {"waiting %", true},
                 {"transfer %", true},
                 {"copies %", true},
                 {"idle %", true},
                 {"hidden comm %", true}});
    constexpr size_t kMost = 512;
    for (size_t i = 0; i < std::min(kMost, r.breakdown.size()); ++i) {
        const BreakdownRow& row = r.breakdown[i];
        const facts::Attribution& a = row.total;
        const auto step = static_cast<double>(std::max<int64_t>(1, a.stepNs));
        const auto share = [&](int64_t ns) {
            return numberCell(fmt::format("{:.1f}", 100 * static_cast<double>(ns) / step),
                              100 * static_cast<double>(ns) / step);
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
             row.splitKnown ? share(a.exposedTransferNs)
                            : numberCell(fmt::format("≤ {:.1f}", 100 * static_cast<double>(a.exposedCommNs()) / step),
                                         100 * static_cast<double>(a.exposedCommNs()) / step),
             share(a.memoryNs), share(a.idleNs), share(a.overlappedCommNs)});
    }
    std::string out = legend({{"compute", "compute"},
                              {"overlapped", "compute with communication hidden under it"},
                              {"transfer", "exposed transfer"},
                              {"wait", "exposed waiting"},
                              {"memory", "copies"},
                              {"idle", "idle"}});
    out += table.markup();
    if (r.breakdown.size() > kMost)
        out += fmt::format("<p class=\"hint\">The first {} of {} ranks; the JSON below has all.</p>\n", kMost,
                           r.breakdown.size());
    for (const std::string& line : delayLines(r)) out += "<p>" + text::markupText("Late ranks: " + line) + ".</p>\n";
    return section("breakdown", "Where the time goes",
                   "Of the analysed steps. Compute, waiting, transfer, copies and idle add up to the step.", out);
}

std::string stepChart(const Report& r) {
    if (r.steps.size() < 2) return {};
    Chart chart{
        "Duration of each step", {"step", false, wholeNumber}, {"duration", false, milliseconds}, {}, {}, {}, true};
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
                   "Points: from the first rank's start to the last rank's end; warm-up is grey. Line: what a step "
                   "costs, the median from one start to the next.",
                   drawChart(chart));
}

std::string bandwidthChart(const Report& r) {
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

std::string efficiencyChart(const Report& r) {
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

std::string criticalPath(const Report& r) {
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
    std::ranges::stable_sort(bars, [](const Bar& a, const Bar& b) { return a.value > b.value; });
    return section("critical-path", "Critical path",
                   "What the chain of work through all ranks that sets the step time consists of.",
                   barChart("Critical path", bars, whole));
}

std::string idleCauses(const Report& r) {
    std::vector<Bar> bars;
    for (const auto& [words, share] : idleShares(r)) bars.push_back({words, text::percentText(share), share, "wait"});
    if (bars.empty()) return {};
    return section("idle", "Why devices idle", "Of the step, all ranks together.",
                   barChart("Idle time by cause", bars));
}

std::string collectives(const Report& r) {
    if (r.collectives.empty()) return {};
    constexpr size_t kMost = 500;
    Table table("collectives-table", "",
                {{"operation"},
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
    for (size_t i = 0; i < std::min(kMost, r.collectives.size()); ++i) {
        const CollectiveRow& row = r.collectives[i];
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
    if (r.collectives.size() > kMost)
        out += fmt::format("<p class=\"hint\">The first {} of {} kinds; the JSON below has all.</p>\n", kMost,
                           r.collectives.size());
    return section("collectives", "Collectives",
                   "Per rank and step; waiting and transfer hold what is hidden behind compute, too.", out);
}

std::string notes(const Report& r, size_t all) {
    if (r.notes.empty()) return {};
    std::string out = "<ul>\n";
    for (const job::Finding& note : r.notes)
        out += fmt::format("<li><b>{} {}</b>: {} ({})</li>\n", text::markupText(note.id), text::markupText(note.title),
                           text::markupText(note.cause), text::percentText(note.severity));
    if (all > r.notes.size()) out += fmt::format("<li>{} of {} notes are shown</li>\n", r.notes.size(), all);
    return section("notes", "Notes", "Under 3 % of the step: listed, but not worth a repair by themselves.",
                   out + "</ul>\n");
}

std::string notJudged(const Report& r) {
    if (r.notJudged.empty()) return {};
    std::string out = "<ul>\n";
    for (const std::string& line : notJudgedLines(r.notJudged)) out += "<li>" + text::markupText(line) + "</li>\n";
    return section("not-judged", "Not judged", "Diagnoses whose input the recording lacks, and what they need.",
                   out + "</ul>\n");
}

std::string background(const Report& r) {
    std::string out = "<p>" + text::markupText("Layout: " + layoutText(r.layout) + ".") + "</p>\n";
    if (std::string replay = replayText(r.replay); r.run.stepNs > 0 && !replay.empty()) {
        replay.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(replay.front())));
        out += "<p>" + text::markupText(replay) + ".</p>\n";
    }
    for (const std::string& note : r.replay.notes) out += "<p>Replay: " + text::markupText(note) + ".</p>\n";
    if (r.run.worldSize.value_or(static_cast<int>(r.run.ranks.size())) > 1)
        out += "<p>Link peaks: " + text::markupText(costs::linkPeaksText(r.linkPeaks, r.run.hosts.size())) + ".</p>\n";
    if (r.run.steps > 0) out += "<p>Step boundaries: " + text::markupText(r.run.stepSource) + ".</p>\n";
    return section("background", "What this rests on", "", out);
}

}  // namespace

std::string renderHtml(const Report& whole) {
    // A page is for readers: what would make it unreadable, and too large to open, stays in the JSON report.
    constexpr size_t kMostFindings = 200;
    Report r = whole;
    if (r.findings.size() > kMostFindings) r.findings.resize(kMostFindings);
    if (r.notes.size() > kMostFindings) r.notes.resize(kMostFindings);

    Page page;
    page.title = r.run.name.empty() ? "run" : r.run.name;
    page.about = fmt::format("{}, layout {}", ranksOnHostsText(r.run), layoutText(r.layout));
    const size_t found = certainFindings(whole);
    page.mood = found > 0 ? Mood::bad : isClean(whole) ? Mood::good : Mood::warn;
    page.verdict = verdictText(whole);
    if (found > 1 && r.replay.ceiling) page.verdictMore = ceilingText(*r.replay.ceiling, found);
    page.body = tiles(r) + losses(r) + overviewSection(r) + findings(r, whole.findings.size()) + breakdown(r);
    page.body += "<div class=\"pair\">\n" + efficiencyChart(r) + criticalPath(r) + stepChart(r) + bandwidthChart(r) +
                 idleCauses(r) + "</div>\n";
    page.body += collectives(r) + notes(r, whole.notes.size()) + notJudged(r) + background(r);
    page.data = nlohmann::ordered_json::parse(renderJson(r)).dump(-1, ' ', true);  // ASCII: no character in it can act
    return renderPage(page);
}

}  // namespace rankscope::report
