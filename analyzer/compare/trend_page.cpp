// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "analyzer/compare/sentences.h"
#include "analyzer/compare/trend.h"
#include "analyzer/compare/trend_words.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/table.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using namespace report::html;

constexpr size_t kMostDrawnEntries = 400;  // points of more cannot be told apart
constexpr size_t kMostTrendRows = 500;     // a browser lays out in a blink what nobody reads to its end
constexpr size_t kTrendLabel = 16;         // a commit is known by fewer letters
constexpr size_t kAxisLabel = 10;          // of kMostNames below the axis

std::string entryName(const TrendEntry& entry, size_t longest = kTrendLabel) {
    return entry.label.empty() ? dayText(entry.startUnixNs) : text::shortened(text::oneLine(entry.label), longest);
}

/// Which entries are named below the axis: where a level begins, as far as there is room, and the last one.
std::vector<std::pair<double, std::string>> entryNames(std::span<const TrendEntry> entries) {
    constexpr size_t kMostNames = 5;
    const double gap = static_cast<double>(entries.size()) / kMostNames;
    std::vector<std::pair<double, std::string>> names;
    for (size_t i = 0; i < entries.size(); ++i) {
        const bool begins = i == 0 || entries[i].level != entries[i - 1].level;
        const bool hasRoom = names.empty() || static_cast<double>(i) - names.back().first >= gap;
        const bool leavesRoom = i + 1 == entries.size() || static_cast<double>(entries.size() - 1 - i) >= gap;
        if (hasRoom && (i + 1 == entries.size() || (begins && leavesRoom)))
            names.emplace_back(static_cast<double>(i), entryName(entries[i], kAxisLabel));
    }
    return names;
}

std::string stepsOverTime(const TrendOfKind& kind) {
    const auto shown = std::span(kind.entries).last(std::min(kMostDrawnEntries, kind.entries.size()));
    Chart chart{"Step of each entry", {"entry", false, nullptr}, {"step", false, millisecondsText}, {}, {}, {}, false,
                entryNames(shown)};
    const bool isCrowded = shown.size() > 60;
    for (size_t i = 0; i < shown.size(); ++i) {
        const TrendEntry& entry = shown[i];
        const auto x = static_cast<double>(i);
        const double levelNs = kind.levels[entry.level].stepNs;
        if (i == 0 || shown[i - 1].level != entry.level) chart.curves.emplace_back();
        chart.curves.back().push_back({x - 0.4, levelNs, "", "", 0});
        chart.curves.back().push_back({x + 0.4, levelNs, "", "", 0});
        for (const TrendRun& run : entry.runs)
            chart.dots.push_back({x, run.stepNs, fmt::format("run {}: {}", run.name, text::durationText(run.stepNs)),
                                  "warm", isCrowded ? 1.5 : 3});
    }
    for (size_t i = 0; i < shown.size(); ++i)
        chart.dots.push_back({static_cast<double>(i), shown[i].stepNs,
                              fmt::format("{}, {}: {}, level {}", entryName(shown[i]), dayText(shown[i].startUnixNs),
                                          text::durationText(shown[i].stepNs), shown[i].level + 1),
                              shown[i].came.empty() ? "compute" : "transfer", isCrowded ? 3.0 : 5.0});
    std::string hint = "Lines are levels. The axis does not begin at zero.";
    if (shown.size() < kind.entries.size())
        hint += fmt::format(" The last {} of {} entries are drawn.", shown.size(), kind.entries.size());
    return "<p class=\"hint\">" + hint + "</p>\n" +
           legend({{"compute", "an entry"}, {"transfer", "the same, with a finding that came"}, {"warm", "its runs"}}) +
           drawChart(chart);
}

std::string cameWith(const TrendEntry& entry) {
    std::vector<std::string> words;
    for (const TrendFinding& finding : entry.came) words.push_back(findingText(finding));
    return text::joined(words, "; ");
}

std::string levelTable(const TrendOfKind& kind, size_t number) {
    Table table(fmt::format("levels-{}", number), {{"level", true},
                                                   {"from"},
                                                   {"to"},
                                                   {"entries", true},
                                                   {"runs", true},
                                                   {"step", true},
                                                   {"change", true},
                                                   {"findings that came with it"}});
    const size_t first = kind.levels.size() - std::min(kMostTrendRows, kind.levels.size());
    for (size_t i = first; i < kind.levels.size(); ++i) {
        const BaselineLevel& level = kind.levels[i];
        const auto begin = std::ranges::find(kind.entries, i, &TrendEntry::level);
        const double change = i == 0 ? 0 : level.stepNs / kind.levels[i - 1].stepNs - 1;
        table.add({numberCell(std::to_string(i + 1), static_cast<double>(i + 1)), textCell(level.first),
                   textCell(level.last), numberCell(std::to_string(level.entries), level.entries),
                   numberCell(std::to_string(level.runs), level.runs),
                   numberCell(text::durationText(level.stepNs), level.stepNs),
                   i == 0 ? textCell("") : numberCell(signedPercentText(change), change), textCell(cameWith(*begin))});
    }
    return "<h3>Levels</h3>\n" + table.markup();
}

std::string findingsOverTime(const TrendOfKind& kind, size_t number) {
    Table table(fmt::format("findings-{}", number), {{"entry"}, {"day"}, {""}, {"finding"}});
    size_t rows = 0;
    const auto add = [&](const TrendEntry& entry, const char* mood, const char* word, const TrendFinding& finding) {
        if (++rows > kMostTrendRows) return;
        table.add({textCell(entryName(entry)), unbrokenCell(dayText(entry.startUnixNs)),
                   Cell{fmt::format("<span class=\"badge {}\">{}</span>", mood, word), word},
                   textCell(findingText(finding))});
    };
    for (const TrendFinding& finding : kind.entries.front().findings)
        add(kind.entries.front(), "warn", "there", finding);
    for (const TrendEntry& entry : kind.entries) {
        for (const TrendFinding& finding : entry.came) add(entry, "bad", "came", finding);
        for (const TrendFinding& finding : entry.went) add(entry, "good", "went", finding);
    }
    if (rows == 0) return "<h3>Findings</h3>\n<p>None in any entry.</p>\n";
    std::string out = "<h3>Findings that came and went</h3>\n" + table.markup();
    if (rows > kMostTrendRows)
        out += fmt::format("<p><b>{} more are left out: --format json has all.</b></p>\n", rows - kMostTrendRows);
    return out;
}

std::string entryTable(const TrendOfKind& kind, size_t number) {
    Table table(fmt::format("entries-{}", number),
                {{"entry"}, {"day"}, {"runs", true}, {"step", true}, {"level", true}, {"findings"}});
    const auto shown = std::span(kind.entries).last(std::min(kMostTrendRows, kind.entries.size()));
    for (const TrendEntry& entry : shown) {
        std::set<std::string> ids;
        for (const TrendFinding& finding : entry.findings) ids.insert(finding.id);
        table.add({textCell(entry.label.empty() ? "-" : entry.label), unbrokenCell(dayText(entry.startUnixNs)),
                   numberCell(std::to_string(entry.runs.size()), static_cast<double>(entry.runs.size())),
                   numberCell(text::durationText(entry.stepNs), entry.stepNs),
                   numberCell(std::to_string(entry.level + 1), static_cast<double>(entry.level + 1)),
                   textCell(ids.empty() ? "none" : text::joined(ids))});
    }
    return "<h3>Entries</h3>\n" + table.markup();
}

std::string leftOutList(const TrendOfKind& kind) {
    if (kind.leftOut.empty()) return {};
    std::string out = "<h3>Runs that do not count</h3>\n<ul>";
    for (const LeftOutRun& run : std::span(kind.leftOut).last(std::min(kMostTrendRows, kind.leftOut.size())))
        out += "<li>" + text::markupText(leftOutRunText(run)) + "</li>";
    return out + "</ul>\n";
}

std::string kindSection(const TrendOfKind& kind, size_t number) {
    return section(fmt::format("kind-{}", number), kind.name, trendSentence(kind) + ".",
                   stepsOverTime(kind) + levelTable(kind, number) + findingsOverTime(kind, number) + leftOutList(kind) +
                       entryTable(kind, number));
}

std::string trendTiles(const TrendOfKind& kind) {
    std::string out = "<dl class=\"tiles\">\n";
    out += tile("Step", text::durationText(kind.levels.back().stepNs),
                fmt::format("newest of {}", text::countedText(kind.levels.size(), "level")));
    if (const auto ratio = kind.lastRatio())
        out +=
            tile("Last move", signedPercentText(*ratio - 1),
                 kind.levels.back().first.empty() ? "against the level before"
                                                  : "with " + text::shortened(kind.levels.back().first, kTrendLabel));
    out += tile("Since the oldest", signedPercentText(kind.ratio() - 1),
                kind.entries.size() == 1 ? "one entry" : fmt::format("{} entries", kind.entries.size()));
    out += tile("Noise between runs", kind.noise ? text::percentText(*kind.noise) : "unknown",
                kind.noise ? "of one entry" : "no entry has two runs");
    out += tile("Findings", std::to_string(kind.entries.back().findings.size()), "in the newest entry");
    return out + "</dl>\n";
}

/// How a page or badge should look at a kind: a newest level that is slower than the one before is bad, unless it was
/// accepted; slower than the oldest, or findings, are worth a look.
Mood moodOfKind(const TrendOfKind& kind) {
    const bool isAccepted = kind.newestMove().beginsLevel;
    if (!isAccepted && kind.lastRatio().value_or(1) >= 1 + kLeastMove) return Mood::bad;
    const bool isSlower = !isAccepted && kind.ratio() >= 1 + kLeastMove;
    return isSlower || !kind.entries.back().findings.empty() ? Mood::warn : Mood::good;
}

/// Where the newest level began, what came with it, and what to do if it is slower and wanted.
std::string newestMoveText(const Trend& trend, const TrendOfKind& kind) {
    if (kind.levels.size() < 2) return {};
    const TrendEntry& begin = kind.newestMove();
    std::string words =
        fmt::format("It began with {} ({}).", entryName(begin, text::kTextColumns), dayText(begin.startUnixNs));
    if (!begin.came.empty()) words += " With it came " + cameWith(begin) + ".";
    if (begin.beginsLevel) return words + " It was accepted.";
    if (moodOfKind(kind) != Mood::bad || begin.label.empty()) return words;
    words += fmt::format(" If that is wanted: rankscope baseline accept --dir {} --label {}",
                         text::shellWord(trend.baseline), text::shellWord(begin.label));
    return begin.came.empty() ? words : words + "; if not: rankscope explain " + begin.came.front().id;
}

}  // namespace

std::string renderTrendHtml(const Trend& trend) {
    Page page;
    page.title = "Step time of " + text::oneLine(trend.baseline);
    page.about = holdsText(trend);
    if (trend.kinds.empty()) {
        page.mood = Mood::warn;
        page.verdict = "The baseline holds no run with a step yet.";
        page.verdictMore = "rankscope baseline save RUN --dir DIR adds one.";
    } else {
        const TrendOfKind& first = trend.kinds.front();
        page.mood = moodOfKind(first);
        page.verdict = first.name + ": " + trendSentence(first) + ".";
        page.verdictMore = newestMoveText(trend, first);
        page.body = trendTiles(first);
        for (size_t i = 0; i < trend.kinds.size(); ++i) page.body += kindSection(trend.kinds[i], i + 1);
    }
    page.data = renderTrendJson(trend);
    return renderPage(page);
}

std::string renderTrendBadge(const Trend& trend) {
    constexpr double kLetter = 6.6, kAround = 10;  // pixels: a letter of Verdana at 11, on the average, and the margins
    constexpr double kHeightPx = 20;
    std::string value = "no runs";
    const char* colour = "#6e7781";
    if (!trend.kinds.empty()) {
        const TrendOfKind& kind = trend.kinds.front();
        value = text::durationText(kind.levels.back().stepNs);
        if (const auto ratio = kind.lastRatio()) value += " (" + signedPercentText(*ratio - 1) + ")";
        const Mood mood = moodOfKind(kind);
        colour = mood == Mood::good ? "#1a7f37" : mood == Mood::warn ? "#9a6700" : "#cf222e";
    }
    const std::string name = "step time";
    const double left = kLetter * static_cast<double>(name.size()) + kAround,
                 right = kLetter * static_cast<double>(value.size()) + kAround;
    const auto part = [&](double x, double width, const char* fill, const std::string& words) {
        return fmt::format(
            "<rect x=\"{:.1f}\" width=\"{:.1f}\" height=\"{:g}\" fill=\"{}\"/>"
            "<text x=\"{:.1f}\" y=\"14\" textLength=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
            x, width, kHeightPx, fill, x + width / 2, width - kAround, text::markupText(words));
    };
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.1f}\" height=\"{1:g}\" role=\"img\" aria-label=\"{2}: "
        "{3}\">"
        "<title>{2}: {3}</title><clipPath id=\"r\"><rect width=\"{0:.1f}\" height=\"{1:g}\" rx=\"3\"/></clipPath>"
        "<g clip-path=\"url(#r)\" fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">{4}{5}"
        "</g></svg>\n",
        left + right, kHeightPx, name, text::markupText(value), part(0, left, "#24292f", name),
        part(left, right, colour, value));
}

}  // namespace rankscope::compare
