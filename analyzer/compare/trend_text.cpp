// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <span>

#include "analyzer/compare/sentences.h"
#include "analyzer/compare/trend.h"
#include "analyzer/compare/trend_words.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using text::Painter;
using text::Shade;

constexpr size_t kPlotColumns = 40;
constexpr size_t kMostLeftOut = 10;
constexpr size_t kLabelColumns = 16;

std::string shownLabel(const std::string& text) {
    return text.empty() ? "-" : text::shortened(text::oneLine(text), kLabelColumns);
}

/// Pads to columns of a terminal; a label is cut by bytes, and one of other letters than ASCII may stand a little
/// short.
std::string padded(std::string text, size_t columns) {
    const auto letters =
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    const auto width = static_cast<size_t>(letters);
    return width < columns ? text + std::string(columns - width, ' ') : text;
}

/// The entries on one scale: a dot a run, a ring an entry.
class Plot {
  public:
    explicit Plot(std::span<const TrendEntry> entries) {
        m_low = m_high = entries.front().stepNs;
        for (const TrendEntry& entry : entries)
            for (const TrendRun& run : entry.runs) {
                m_low = std::min(m_low, run.stepNs);
                m_high = std::max(m_high, run.stepNs);
            }
    }
    std::string row(const TrendEntry& entry) const {
        std::string cells(kPlotColumns, ' ');
        for (const TrendRun& run : entry.runs) cells[column(run.stepNs)] = '.';
        cells[column(entry.stepNs)] = 'o';
        return cells;
    }

  private:
    size_t column(double ns) const {
        if (m_high <= m_low) return 0;
        const double share = std::clamp((ns - m_low) / (m_high - m_low), 0.0, 1.0);
        return static_cast<size_t>(std::lround(share * (kPlotColumns - 1)));
    }
    double m_low = 0, m_high = 0;
};

std::string levelRows(const TrendOfKind& kind, const Painter& paint) {
    std::string out = paint(Shade::dim, fmt::format("  level  {:<{}}  {:<{}}  entries  runs      step   change\n",
                                                    "from", kLabelColumns, "to", kLabelColumns));
    for (size_t i = 0; i < kind.levels.size(); ++i) {
        const BaselineLevel& level = kind.levels[i];
        std::string change;
        if (i > 0) {
            const double ratio = level.stepNs / kind.levels[i - 1].stepNs;
            change = paint(ratio > 1 ? Shade::red : Shade::green, fmt::format("{:>8}", signedPercentText(ratio - 1)));
        }
        out += fmt::format("  {:>5}  {}  {}  {:>7}  {:>4}  {:>8}{}\n", i + 1,
                           padded(shownLabel(level.first), kLabelColumns),
                           padded(shownLabel(level.last), kLabelColumns), level.entries, level.runs,
                           text::durationText(level.stepNs), change.empty() ? change : " " + change);
    }
    return out;
}

std::string entryRows(const TrendOfKind& kind, size_t last, const Painter& paint) {
    const auto shown = std::span(kind.entries).last(std::min(last, kind.entries.size()));
    if (shown.empty()) return {};
    const Plot plot(shown);
    std::string out = paint(Shade::dim, fmt::format("  {:<{}}  {:<10}  runs      step  level  {}\n", "entry",
                                                    kLabelColumns, "day", "a dot a run, a ring the entry"));
    for (const TrendEntry& entry : shown) {
        std::string row =
            fmt::format("  {}  {:<10}  {:>4}  {:>8}  {:>5}  {}", padded(shownLabel(entry.label), kLabelColumns),
                        dayText(entry.startUnixNs), entry.runs.size(), text::durationText(entry.stepNs),
                        entry.level + 1, plot.row(entry));
        row.erase(row.find_last_not_of(' ') + 1);
        out += row + "\n";
        for (const TrendFinding& finding : entry.came)
            out += "      " + paint(Shade::red, "came") + "  " + text::oneLine(findingText(finding)) + "\n";
        for (const TrendFinding& finding : entry.went)
            out += "      " + paint(Shade::green, "went") + "  " + text::oneLine(findingText(finding)) + "\n";
    }
    if (shown.size() < kind.entries.size())
        out += fmt::format("  {} older, which --last {} or --format json lists\n",
                           kind.entries.size() - shown.size() == 1
                               ? "one entry is"
                               : fmt::format("{} entries are", kind.entries.size() - shown.size()),
                           kind.entries.size());
    return out;
}

}  // namespace

std::string renderTrendText(const Trend& trend, size_t last, bool colour) {
    const Painter paint(colour);
    std::string out = text::oneLine(trend.baseline) + ": " + holdsText(trend) + "\n";
    for (const TrendOfKind& kind : trend.kinds) {
        out += "\n" + text::wrapped(paint.bold(text::oneLine(kind.name)) + ": " + trendSentence(kind));
        out += text::wrapped(kind.noise ? fmt::format("runs of an entry differ by {}", text::percentText(*kind.noise))
                                        : "what runs differ by is not known: no entry has two",
                             "  ");
        out += levelRows(kind, paint) + entryRows(kind, last, paint);
        if (!kind.leftOut.empty()) out += "  runs that do not count, the youngest first\n";
        for (const LeftOutRun& run : kind.leftOut | std::views::reverse | std::views::take(kMostLeftOut))
            out += "      " + text::oneLine(leftOutRunText(run)) + "\n";
        if (const auto& findings = kind.entries.back().findings; !findings.empty()) {
            out += "  findings of the newest entry\n";
            for (const TrendFinding& finding : findings) out += "      " + text::oneLine(findingText(finding)) + "\n";
        }
    }
    return out;
}

}  // namespace rankscope::compare
