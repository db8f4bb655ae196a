// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using text::first;
using text::Shade;

constexpr size_t kLongestLine = 4000;   // bytes: a name may be anything
constexpr size_t kRowsInText = 12;      // of each table; the JSON has all
constexpr double kWorthTelling = 0.01;  // of the step: smaller changes of kernels and metrics are no news

class Text {
  public:
    explicit Text(bool colour) : paint(colour) {}
    const text::Painter paint;

    /// Names of the job in it are only text: what a line may hold besides is colour.
    void line(const std::string& text = {}) {
        for (size_t at = 0; at < text.size();) {
            const size_t escape = paint.hasColour() ? std::min(text.find("\033[", at), text.size()) : text.size();
            m_text += text::shortened(text::oneLine(std::string_view(text).substr(at, escape - at)), kLongestLine);
            if (escape == text.size()) break;
            const size_t end = text.find_first_not_of("0123456789;", escape + 2);
            const bool isColour = end != std::string::npos && text[end] == 'm';
            m_text += isColour ? text.substr(escape, end + 1 - escape) : "?";
            at = isColour ? end + 1 : escape + 2;
        }
        m_text += '\n';
    }
    /// Behind `first`, which is shaded, in lines that fit a report.
    void sentence(const std::string& first, const std::string& sentence, Shade shade = Shade::plain) {
        const std::string lines = text::wrapped(text::shortened(text::oneLine(sentence), kLongestLine), first);
        for (size_t at = 0; at < lines.size();) {
            const size_t end = lines.find('\n', at);
            const size_t behind = at == 0 ? first.size() : at;
            line((at == 0 ? paint(shade, first) : std::string()) + lines.substr(behind, end - behind));
            at = end + 1;
        }
    }
    std::string take() && { return std::move(m_text); }

  private:
    std::string m_text;
};

std::string sideText(const ComparedSide& side) {
    constexpr size_t kMostNames = 5;
    if (side.runs.empty()) return "no run";
    std::vector<std::string> names;
    for (const ComparedRun& run : first(side.runs, kMostNames))
        names.push_back(run.label.empty() ? run.name : fmt::format("{} ({})", run.name, run.label));
    return fmt::format("{}: {}", text::countedText(side.runs.size(), "run"), text::joined(names)) +
           (side.runs.size() > kMostNames ? fmt::format(" and {} more", side.runs.size() - kMostNames) : "");
}

void writeVerdict(const Comparison& c, Text& text) {
    const StepTimeChange& step = c.step;
    const Shade shade = step.verdict == StepVerdict::regression    ? Shade::boldRed
                        : step.verdict == StepVerdict::improvement ? Shade::boldGreen
                                                                   : Shade::bold;
    if (step.verdict == StepVerdict::undecided) {
        const std::vector<std::string> lines = undecidedLines(c);
        for (size_t i = 0; i < lines.size(); ++i)
            text.line(i == 0 ? text.paint.bold(lines[i]) : (i + 1 == lines.size() ? "  do    " : "  ") + lines[i]);
    } else {
        text.line(text.paint(shade, step.reason));
    }
    text.line("  base  " + sideText(c.base));
    text.line("  new   " + sideText(c.now));
    if (const std::string job = jobText(c); !job.empty()) text.line("  job   " + job);
    if (const std::string noise = noiseSentence(step); !noise.empty()) text.sentence("  noise ", noise);
    if (step.pValue)
        text.line(fmt::format("  test  p = {:.2g}", *step.pValue) +
                  (step.rankPValue ? fmt::format(", rank test p = {:.2g}", *step.rankPValue) : ""));
    if (step.modes.empty()) return;
    const StepTimeChange::Modes& example = step.modes.front();
    text.sentence(
        "  modes ",
        fmt::format("steps are of two kinds in {} (in {}: {} and {}, {:.0f} % of the second): {} are compared",
                    text::countedText(step.modes.size(), "run"), example.run, text::durationText(example.lowNs),
                    text::durationText(example.highNs), 100 * example.highShare,
                    step.estimator == "mean" ? "means" : "typical steps, as most runs have one kind,"));
}

void writeIncomparable(const Comparison& c, Text& text) {
    for (const Incomparable& row : c.incomparable)
        text.sentence("  differ ", fmt::format("in {}: {} and {}; {}", row.what, row.base, row.now, row.consequence),
                      row.refused ? Shade::bold : Shade::plain);
    size_t losses = 0;
    for (const ComparedLoss& loss : c.losses)
        if (loss.severity != "info" && ++losses <= kRowsInText)
            text.line(fmt::format("  loss  {}, {}: {}", loss.side, loss.run, loss.meaning));
    if (losses > kRowsInText) text.line(fmt::format("  loss  and {} more", losses - kRowsInText));
    for (const std::string& note : c.notes) text.sentence("  note  ", note);
}

void writeCauses(const Comparison& c, Text& text) {
    if (c.causes.empty()) return;
    text.line();
    text.line(text.paint.bold(causesHeading(c)));
    for (const ChangeCause& cause : c.causes) {
        text.line(fmt::format("  {}  {}{}", signedDurationText(cause.ns), cause.text,
                              cause.diagnosis.empty() ? "" : " [" + cause.diagnosis + "]"));
        for (const std::string& evidence : cause.evidence) text.line("            " + evidence);
        const std::vector<std::string> fix = fixOf(c, cause);
        for (const std::string& line : first(fix, 2)) text.line("            fix: " + line);
    }
}

void writeAttribution(const Comparison& c, Text& text) {
    if (!showsAttribution(c)) return;
    text.line();
    text.line(text.paint.bold("Where the change is") + fmt::format(" ({}; adds up to {})",
                                                                   attributionScope(c.attribution),
                                                                   signedDurationText(c.step.changeNs())));
    for (const AttributionRow& row : c.attribution)
        text.line(fmt::format("  {:>10}  {}", signedDurationText(row.ns), row.what));
}

void writeFindings(const Comparison& c, Text& text) {
    if (c.findings.empty()) return;
    const auto same = static_cast<size_t>(std::ranges::count(c.findings, FindingStatus::same, &FindingChange::status));
    text.line();
    text.line(text.paint.bold("Findings") + (c.base.runs.empty()         ? " of the new side"
                                             : same == c.findings.size() ? ": the same on both sides"
                                                                         : ""));
    for (const FindingChange* finding : firstFindings(c, kRowsInText)) {
        std::string worth = worthText(*finding);
        if (!worth.empty()) worth = ", " + worth;
        text.line(fmt::format("  {:<7} {} {}, {}{}{}{}", toText(finding->status), finding->id, finding->title,
                              finding->where, inRunsText(*finding), worth, finding->allowed ? " (allowed)" : ""));
    }
    if (c.findings.size() > kRowsInText) text.line(fmt::format("  and {} more", c.findings.size() - kRowsInText));
}

/// Tells what is shown whether it changed or not.
bool isHeadline(const MetricChange& metric) {
    constexpr std::string_view kNames[] = {"throughput", "exposed communication", "overlap of communication", "bubble",
                                           "idle",       "parallel efficiency"};
    return text::contains(kNames, metric.name);
}

void writeMetrics(const Comparison& c, Text& text) {
    std::vector<const MetricChange*> rows = comparedMetrics(c);
    std::erase_if(rows, [](const MetricChange* metric) { return !metric->significant && !isHeadline(*metric); });
    if (rows.empty()) return;
    if (rows.size() > kRowsInText) rows.resize(kRowsInText);
    const auto changed = std::ranges::count(c.metrics, true, &MetricChange::significant);
    const auto tested =
        std::ranges::count_if(c.metrics, [](const MetricChange& metric) { return !metric.test.empty(); });
    text.line();
    text.line(text.paint.bold("Other numbers") +
              (tested == 0 ? " (not tested; --format md has all)"
                           : fmt::format(" ({} of {} surely changed, corrected for their number; --format md has all)",
                                         changed == 0 ? "none" : std::to_string(changed), tested)));
    size_t width = 0;
    for (const MetricChange* metric : rows) width = std::max(width, metric->name.size());
    for (const MetricChange* metric : rows) {
        std::string line = fmt::format("  {:<{}} {:>12} -> {:>12}  {:>12}  {}", metric->name, width,
                                       metricText(*metric->base, metric->unit), metricText(*metric->now, metric->unit),
                                       metricChangeText(*metric), metricVerdict(*metric));
        line.erase(line.find_last_not_of(' ') + 1);
        text.line(line);
    }
}

void writeKernels(const Comparison& c, Text& text) {
    const double worth = kWorthTelling * c.step.newNs.value_or(0);
    std::vector<KernelChange> rows = c.kernels;
    std::erase_if(rows, [&](const KernelChange& kernel) { return std::abs(kernel.deltaNs) < worth; });
    if (rows.empty() || c.causes.empty() || worth <= 0) return;
    text.line();
    text.line(text.paint.bold("Kernels that changed") + " (a step, mean over ranks)");
    for (const KernelChange& kernel : first(rows, kRowsInText))
        text.line(fmt::format("  {:>10}  {} ({} -> {})", signedDurationText(kernel.deltaNs), kernel.name,
                              kernel.base ? text::durationText(kernel.base->ns) : "none",
                              kernel.now ? text::durationText(kernel.now->ns) : "none"));
}

void writeGate(const Comparison& c, Text& text) {
    text.line();
    const std::string on = text::joined(c.gate.failOn);
    text.line(c.gate.failed ? text.paint(Shade::boldRed, "Gate failed") + fmt::format(" (on {})", on)
                            : fmt::format("Gate {} (fails on {})", gateWord(c.gate), on));
    const auto list = [&](const char* word, const std::vector<std::string>& lines) {
        for (const std::string& line : first(lines, kRowsInText))
            text.line(fmt::format("  {:<8} {}", word, gateLineText(c, line)));
        if (lines.size() > kRowsInText) text.line(fmt::format("  {:<8} and {} more", word, lines.size() - kRowsInText));
    };
    list("failed", c.gate.reasons);
    list("allowed", c.gate.allowed);
    list("notice", c.gate.notices);
}

}  // namespace

std::string renderComparisonText(const Comparison& comparison, bool colour) {
    Text text(colour);
    writeVerdict(comparison, text);
    writeIncomparable(comparison, text);
    writeCauses(comparison, text);
    writeAttribution(comparison, text);
    writeFindings(comparison, text);
    writeMetrics(comparison, text);
    writeKernels(comparison, text);
    writeGate(comparison, text);
    return std::move(text).take();
}

}  // namespace rankscope::compare
