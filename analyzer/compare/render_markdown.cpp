// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using text::first;

constexpr size_t kRowsInMarkdown = 40;  // a comment of a pull request is read on one or two screens
constexpr size_t kLongestCell = 300;
constexpr size_t kMostRepairs = 3;  // of findings that fail the gate; the page has all

std::string cell(const std::string& text) {
    return text::markdownText(text, kLongestCell);
}

/// A circle: red, green, white, or yellow where nothing can be claimed.
const char* sign(StepVerdict verdict) {
    if (verdict == StepVerdict::regression) return "\xF0\x9F\x94\xB4";
    if (verdict == StepVerdict::improvement) return "\xF0\x9F\x9F\xA2";
    return verdict == StepVerdict::noChange ? "\xE2\x9A\xAA" : "\xF0\x9F\x9F\xA1";
}

void addStepTime(const Comparison& c, std::string& out) {
    out += "\n### Step\n\n| | base | new | change |\n| --- | ---: | ---: | ---: |\n| step | ";
    out += (c.step.baseNs ? text::durationText(*c.step.baseNs) : "unknown") + " | " +
           (c.step.newNs ? text::durationText(*c.step.newNs) : "unknown") + " | ";
    out += c.step.ratio ? signedPercentText(*c.step.ratio - 1) : "unknown";
    if (c.step.interval)
        out += fmt::format(" ({} to {})", signedPercentText(c.step.interval->low - 1),
                           signedPercentText(c.step.interval->high - 1));
    out += fmt::format(" |\n| runs | {} | {} | |\n", c.base.runs.size(), c.now.runs.size());
    if (const std::string noise = noiseSentence(c.step); !noise.empty()) out += "\nNoise: " + cell(noise) + ".\n";
    if (const std::string job = jobText(c); !job.empty()) out += "\nJob: " + cell(job) + ".\n";
}

void addCauses(const Comparison& c, std::string& out) {
    if (c.causes.empty()) return;
    out += "\n### " + causesHeading(c) + "\n\n";
    for (const ChangeCause& cause : first(c.causes, kRowsInMarkdown)) {
        out += fmt::format("- **{}** {}{}\n", signedDurationText(cause.ns), cell(cause.text),
                           cause.diagnosis.empty() ? "" : " (" + cell(cause.diagnosis) + ")");
        for (const std::string& line : first(cause.evidence, 5)) out += "  - " + cell(line) + "\n";
        const std::vector<std::string> fix = fixOf(c, cause);
        for (const std::string& line : first(fix, 2)) out += "  - fix: " + cell(line) + "\n";
    }
}

void addAttribution(const Comparison& c, std::string& out) {
    if (!showsAttribution(c)) return;
    out += fmt::format(
        "\n### Where the change is\n\nDifferences {}; work beside it is not in them. The rows add up to {}.\n\n| "
        "change per step | what |\n| ---: | --- |\n",
        attributionScope(c.attribution), signedDurationText(c.step.changeNs()));
    for (const AttributionRow& row : foldedParts(c.attribution, kRowsInMarkdown))
        out += fmt::format("| {} | {} |\n", signedDurationText(row.ns), cell(row.what));
}

void addFindings(const Comparison& c, std::string& out) {
    if (c.findings.empty()) return;
    out += "\n### Findings\n\n| | finding | cause | base | new |\n| --- | --- | --- | ---: | ---: |\n";
    for (const FindingChange* finding : firstFindings(c, kRowsInMarkdown)) {
        out += fmt::format("| {}{} | {} | {} | {} | {} |\n", failsGate(c, *finding) ? "**fails** " : "",
                           toText(finding->status),
                           cell(findingName(*finding)) + inRunsText(*finding) + (finding->allowed ? " (allowed)" : ""),
                           cell(finding->cause), worthText(*finding, finding->base), worthText(*finding, finding->now));
    }
    if (const std::string rest = leftOutText(c, kRowsInMarkdown); !rest.empty()) out += "\n" + rest + ".\n";
}

void addMetrics(const Comparison& c, std::string& out) {
    const std::vector<const MetricChange*> rows = comparedMetrics(c);
    if (rows.empty()) return;
    out += fmt::format(
        "\n<details><summary>{} other numbers</summary>\n\n| number | base | new | change | |\n| --- | ---: | ---: | "
        "---: | --- |\n",
        rows.size());
    for (const MetricChange* m : first(rows, 200)) {
        const std::string verdict = metricVerdict(*m);
        out +=
            fmt::format("| {} | {} | {} | {} | {} |\n", cell(m->name), metricText(*m->base, m->unit),
                        metricText(*m->now, m->unit), metricChangeText(*m), verdict == "worse" ? "**worse**" : verdict);
    }
    out += "\n</details>\n";
}

void addKernels(const Comparison& c, std::string& out) {
    if (c.kernels.empty()) return;
    out += fmt::format(
        "\n<details><summary>{} kernels, those that changed most first</summary>\n\nPer step, mean over ranks.\n\n| "
        "kernel | base | new | change |\n| --- | ---: | ---: | ---: |\n",
        c.kernels.size());
    const auto time = [](const std::optional<KernelSummary>& side) {
        return side ? text::durationText(side->ns) : std::string("none");
    };
    for (const KernelChange& kernel : first(c.kernels, kRowsInMarkdown))
        out += fmt::format("| {} | {} | {} | {} |\n", cell(kernel.name), time(kernel.base), time(kernel.now),
                           signedDurationText(kernel.deltaNs));
    if (c.kernels.size() > kRowsInMarkdown)
        out += fmt::format("\n{} more are in --format json.\n", c.kernels.size() - kRowsInMarkdown);
    out += "\n</details>\n";
}

void addWarnings(const Comparison& c, std::string& out) {
    size_t told = 0;
    const auto quote = [&](const std::string& text) {
        if (++told <= kRowsInMarkdown) out += "\n> " + cell(text) + "\n";
    };
    for (const Incomparable& row : c.incomparable)
        quote(fmt::format("{} differs: {} and {}; {}", row.what, row.base.empty() ? "unknown" : row.base,
                          row.now.empty() ? "unknown" : row.now, row.consequence));
    for (const ComparedLoss& loss : c.losses)
        if (loss.severity != "info")
            quote(fmt::format("{} ({}, {}): {}", loss.severity, loss.side, loss.run, loss.meaning));
    for (const std::string& note : c.notes) quote(note);
    if (told > kRowsInMarkdown) out += fmt::format("\n> and {} more\n", told - kRowsInMarkdown);
}

/// Tells whether its repair stands with the causes.
bool isCause(const Comparison& c, const FindingChange& finding) {
    return std::ranges::any_of(c.causes, [&](const ChangeCause& cause) { return cause.diagnosis == finding.id; });
}

void addGate(const Comparison& c, std::string& out) {
    std::vector<std::string> words;
    for (const std::string& word : c.gate.failOn) words.push_back(cell(word));
    const std::string on = text::joined(words);
    out += fmt::format("\n**Gate {}**{}\n", gateWord(c.gate), on.empty() ? "" : " (fails on " + on + ")");
    if (!c.gate.reasons.empty() || !c.gate.allowed.empty() || !c.gate.notices.empty()) out += "\n";
    const auto list = [&](const char* what, const std::vector<std::string>& lines) {
        for (const std::string& line : first(lines, kRowsInMarkdown))
            out += fmt::format("- {}: {}\n", what, cell(gateLineText(c, line)));
        if (lines.size() > kRowsInMarkdown) out += fmt::format("- {}: {} more\n", what, lines.size() - kRowsInMarkdown);
    };
    list("failed", c.gate.reasons);
    size_t repairs = 0;
    for (const FindingChange* finding : firstFindings(c, kRowsInMarkdown)) {
        if (!failsGate(c, *finding) || finding->fix.empty() || isCause(c, *finding)) continue;
        if (++repairs > kMostRepairs) break;
        out += fmt::format("- fix of {}: {}\n", cell(finding->id), cell(finding->fix.front()));
    }
    list("allowed", c.gate.allowed);
    list("notice", c.gate.notices);
}

}  // namespace

std::string renderComparisonMarkdown(const Comparison& c) {
    std::string out = fmt::format("## {} Rankscope: {}, {}\n\n{}\n", sign(c.step.verdict), toText(c.step.verdict),
                                  cell(titleText(c)), cell(c.step.reason));
    // What a reader does about it stands on the first screen: whether it fails, why, and the repair; the numbers below.
    addGate(c, out);
    addCauses(c, out);
    addStepTime(c, out);
    addWarnings(c, out);
    addAttribution(c, out);
    addFindings(c, out);
    addMetrics(c, out);
    addKernels(c, out);
    return text::cutForSummary(std::move(out));
}

}  // namespace rankscope::compare
