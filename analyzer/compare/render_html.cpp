// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/table.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {

namespace {

using namespace report::html;

using text::first;

constexpr size_t kRowsInPage = 500;  // a browser lays out in a blink what nobody reads to its end
constexpr size_t kMostKernels = 200;
constexpr size_t kMostLines = 30;

template <typename Side>
Cell durationCell(const std::optional<Side>& side, double Side::*part) {
    return side ? numberCell(text::durationText((*side).*part), (*side).*part) : unknownCell();
}

Mood moodOf(const Comparison& c) {
    if (c.gate.failed || c.step.verdict == StepVerdict::regression) return Mood::bad;
    const bool isOpen =
        c.step.isOpen() || c.step.verdict == StepVerdict::noBaseline || c.step.verdict == StepVerdict::incomparable;
    return isOpen || std::ranges::any_of(c.findings, isTrouble) ? Mood::warn : Mood::good;
}

std::string gateLine(const Comparison& c) {
    const std::string on = text::joined(c.gate.failOn);
    const bool acts = c.gate.conclusion == GateConclusion::passed || c.gate.conclusion == GateConclusion::failed;
    return fmt::format("The gate {}{}{}.", acts ? "" : "is ", gateWord(c.gate),
                       on.empty() ? "" : " (it fails on " + on + ")");
}

std::string tiles(const Comparison& c) {
    const StepTimeChange& step = c.step;
    std::string out = "<dl class=\"tiles\">\n";
    const auto add = [&](const char* name, const std::optional<double>& ns, const ComparedSide& side) {
        const std::string of = step.estimator + " of " + text::countedText(side.runs.size(), "run");
        if (ns) out += tile(name, text::durationText(*ns), of);
    };
    add("Step, base", step.baseNs, c.base);
    add("Step, new", step.newNs, c.now);
    if (step.ratio)
        out += tile("Change", signedPercentText(*step.ratio - 1),
                    step.interval ? fmt::format("{} to {}, {:g} % sure", signedPercentText(step.interval->low - 1),
                                                signedPercentText(step.interval->high - 1), 100 * step.confidence)
                                  : "noise between runs is not known");
    if (step.smallestVisible)
        out += tile("Would have seen", smallestVisibleText(*step.smallestVisible),
                    "a slow-down of this size, nine times in ten");
    if (step.betweenRuns)
        out += tile("Noise between runs", text::percentText(*step.betweenRuns), "told by " + step.noiseSource);
    const auto count = [&](FindingStatus status) {
        return std::ranges::count(c.findings, status, &FindingChange::status);
    };
    if (c.base.runs.empty())
        out += tile("Findings", std::to_string(c.findings.size()), "on the new side");
    else
        out += tile("New findings", std::to_string(count(FindingStatus::isNew)),
                    c.findings.empty()
                        ? "none on either side"
                        : fmt::format("{} gone, {} worse, {} better; {} in all", count(FindingStatus::gone),
                                      count(FindingStatus::worse), count(FindingStatus::better), c.findings.size()));
    return out + "</dl>\n";
}

std::string warnings(const Comparison& c) {
    std::vector<std::pair<const char*, std::string>> lines;
    for (const std::string& reason : c.gate.reasons) lines.emplace_back("error", "gate: " + gateLineText(c, reason));
    for (const std::string& allowed : c.gate.allowed) lines.emplace_back("info", "allowed: " + allowed);
    for (const std::string& notice : c.gate.notices) lines.emplace_back("warning", "gate: " + gateLineText(c, notice));
    for (const ComparedLoss& loss : c.losses)
        lines.emplace_back(loss.severity == "error"     ? "error"
                           : loss.severity == "warning" ? "warning"
                                                        : "info",
                           loss.side + ", " + loss.run + ": " + loss.meaning);
    for (const std::string& note : c.notes) lines.emplace_back("info", note);
    if (lines.empty()) return {};
    std::string out = "<ul class=\"losses\" aria-label=\"What to know of this comparison\">\n";
    for (const auto& [level, line] : lines)
        out += fmt::format("<li class=\"{}\">{}</li>\n", level, text::markupText(line));
    return out + "</ul>\n";
}

std::string incomparable(const Comparison& c) {
    if (c.incomparable.empty()) return {};
    Table table("incomparable-table", {{"what differs"}, {"base"}, {"new"}, {"consequence"}});
    const auto known = [](const std::string& text) { return text.empty() ? unknownCell() : textCell(text); };
    for (const Incomparable& row : c.incomparable)
        table.add({textCell(row.what), known(row.base), known(row.now), textCell(row.consequence)});
    return section("incomparable", "What differs beside the code",
                   "Runs on other machines or of another shape are other runs: what cannot be compared is refused.",
                   table.markup());
}

std::string attribution(const Comparison& c) {
    if (std::ranges::all_of(c.attribution, [](const AttributionRow& row) { return row.part == StepPart::rest; }))
        return {};
    double largest = 0;
    for (const AttributionRow& row : c.attribution) largest = std::max(largest, std::abs(row.ns));
    Table table("attribution-table", {{"change", true}, {"", false, true}, {"what"}, {"carried by"}});
    for (const AttributionRow& row : c.attribution) {
        std::vector<std::string> details;
        for (const std::string& detail : first(row.details, 3)) details.push_back(textCell(detail).markup);
        table.add(
            {numberCell(signedDurationText(row.ns), row.ns),
             markupCell(stackedBar(
                 {{row.ns > 0 ? "transfer" : "overlapped", signedDurationText(row.ns), std::abs(row.ns)}}, largest)),
             textCell(row.what), Cell{text::joined(details, "<br>"), row.details.empty() ? "" : row.details.front()}});
    }
    std::string hint = fmt::format("Differences {}; work beside it is not in them. The rows add up to {} per step",
                                   attributionScope(c.attribution), signedDurationText(c.step.changeNs()));
    hint += showsAttribution(c) ? "." : ", which is within the noise: they say nothing of the code.";
    return section("attribution", "Where the change is", hint, table.markup());
}

std::string list(const std::vector<std::string>& lines) {
    std::string out = "<ul>";
    for (const std::string& line : lines) out += "<li>" + text::markupText(line) + "</li>";
    return out + "</ul>";
}

std::string causes(const Comparison& c) {
    if (c.causes.empty()) return {};
    std::string out;
    for (const ChangeCause& cause : first(c.causes, 50)) {
        out += fmt::format(
            "<article class=\"finding\"><h3>{}{}</h3>\n<p class=\"cost\"><b>{}</b> per step{}</p>\n",
            cause.diagnosis.empty() ? "" : "<span class=\"id\">" + text::markupText(cause.diagnosis) + "</span>",
            text::markupText(cause.text), signedDurationText(cause.ns),
            cause.where.empty() || cause.text.find(cause.where) != std::string::npos
                ? ""
                : ", " + text::markupText(cause.where));
        const std::vector<std::string> fix = fixOf(c, cause);
        out += (cause.evidence.empty() ? "" : "<h4>Evidence</h4>" + list(cause.evidence)) +
               (fix.empty() ? "" : "<h4>Fix</h4>" + list(fix)) + "</article>\n";
    }
    return section("causes", causesHeading(c), "What made the difference, largest first.", out);
}

Cell statusCell(const Comparison& c, const FindingChange& finding) {
    const bool fails = failsGate(c, finding);
    const std::string word = std::string(toText(finding.status)) + inRunsText(finding) +
                             (fails             ? ", fails the gate"
                              : finding.allowed ? ", allowed"
                                                : "");
    const bool isPlain = finding.status == FindingStatus::same || finding.status == FindingStatus::present;
    if (isPlain && !fails) return textCell(word);
    const char* mood = fails ? "bad" : isTrouble(finding) ? "warn" : "good";
    return {fmt::format("<span class=\"badge {}\">{}</span>", mood, word), word};
}

std::string findings(const Comparison& c) {
    if (c.findings.empty()) return section("findings", "Findings", "", "<p>None on either side.</p>\n");
    Table table("findings-table",
                {{"status"}, {"diagnosis"}, {"where"}, {"cause"}, {"base", true}, {"new", true}, {"fix", false, true}});
    for (const FindingChange* finding : firstFindings(c, kRowsInPage)) {
        const auto worth = [&](const FindingSide& side) {
            const auto& ns = finding->worthNs(side);
            const std::string words = worthText(*finding, side);
            return side.isThere && ns ? numberCell(words, *ns) : Cell{words, std::nullopt};
        };
        const std::string fix =
            finding->fix.empty() ? "" : "<details><summary>show</summary>" + list(finding->fix) + "</details>";
        table.add({statusCell(c, *finding), textCell(finding->id + " " + finding->title), textCell(finding->where),
                   textCell(finding->cause), worth(finding->base), worth(finding->now), markupCell(fix)});
    }
    std::string out = table.markup();
    if (const std::string rest = leftOutText(c, kRowsInPage); !rest.empty())
        out += "<p id=\"findings-left-out\"><b>" + text::markupText(rest) + ".</b></p>\n";
    return section("findings", "Findings",
                   "What their repairs save per step, where both sides could play them; else what they cost.", out);
}

/// Says why some numbers are not compared, each reason once.
std::vector<std::string> refusals(const Comparison& c) {
    std::vector<std::string> reasons;
    for (const MetricChange& metric : c.metrics) {
        constexpr std::string_view kVerdict = "incomparable: ";
        const std::string reason = metric.refused.substr(metric.refused.starts_with(kVerdict) ? kVerdict.size() : 0);
        if (!reason.empty() && !text::contains(reasons, reason)) reasons.push_back(reason);
    }
    return reasons;
}

/// Returns what changes are sorted by; of what was not there it is larger than any.
double relativeChange(double base, double now) {
    if (base == 0) return now == 0 ? 0 : std::copysign(std::numeric_limits<double>::max(), now);
    return now / base - 1;
}

std::string metrics(const Comparison& c) {
    if (c.metrics.empty()) return {};
    Table table("metrics-table", {{"number"}, {"base", true}, {"new", true}, {"change", true}, {"verdict"}});
    for (const MetricChange& m : c.metrics) {
        const auto value = [&](const std::optional<double>& v) {
            return v ? numberCell(metricText(*v, m.unit), *v) : unknownCell();
        };
        Cell change = m.refused.empty() ? unknownCell() : markupCell("");
        if (m.base && m.now && m.refused.empty())
            change = numberCell(metricChangeText(m), relativeChange(*m.base, *m.now));
        const std::string told = metricVerdict(m);
        Cell verdict = textCell(!told.empty() ? told : m.test.empty() ? "not tested" : "no sure change");
        if (m.significant)
            verdict.markup = fmt::format("<span class=\"badge {}\">{}</span>", told == "better" ? "good" : "bad", told);
        table.add({textCell(m.name), value(m.base), value(m.now), change, verdict});
    }
    std::string hint = "They do not decide the gate; what is called sure is corrected for how many of them there are.";
    for (const std::string& reason : refusals(c)) hint += " Not compared: " + reason + ".";
    return section("metrics", "Other numbers", hint, table.markup());
}

/// Makes columns of numbers that both sides have.
void addForBothSides(std::initializer_list<const char*> numbers, std::vector<Column>& columns) {
    for (const char* number : numbers)
        for (const char* side : {"base", "new"}) columns.push_back({fmt::format("{}, {}", number, side), true});
}

std::string collectives(const Comparison& c) {
    if (c.collectives.empty()) return {};
    std::vector<Column> columns{{"use"}, {"operation"}, {"size"}, {"ranks", true}};
    addForBothSides({"busbw", "transfer", "waiting"}, columns);
    columns.push_back({"algorithm"});
    Table table("collectives-table", columns);
    for (const CollectiveChange& row : c.collectives) {
        const auto busbw = [](const std::optional<TrafficSummary>& s) {
            return s && s->busbw > 0 ? numberCell(text::bandwidthText(s->busbw), s->busbw) : unknownCell();
        };
        const auto choice = [](const std::optional<TrafficSummary>& s) -> std::string {
            if (!s) return "none";
            return s->algorithm.empty() ? "unknown" : s->algorithm + " " + s->protocol;
        };
        const std::string before = choice(row.base), after = choice(row.now);
        table.add({textCell(row.role), textCell(row.op), unbrokenCell(row.sizeClass),
                   numberCell(std::to_string(row.ranks), row.ranks), busbw(row.base), busbw(row.now),
                   durationCell(row.base, &TrafficSummary::transferNs),
                   durationCell(row.now, &TrafficSummary::transferNs), durationCell(row.base, &TrafficSummary::waitNs),
                   durationCell(row.now, &TrafficSummary::waitNs),
                   textCell(before == after ? after : before + " \xE2\x86\x92 " + after)});
    }
    return section("collectives", "Collectives", "Per step; matched by what they are for.", table.markup());
}

std::string kernels(const Comparison& c) {
    if (c.kernels.empty()) return {};
    std::vector<Column> columns{{"kernel"}, {"change", true}, {"base", true}, {"new", true}};
    addForBothSides({"count"}, columns);
    Table table("kernels-table", columns);
    for (const KernelChange& row : c.kernels) {
        const auto count = [](const std::optional<KernelSummary>& s) {
            if (!s) return unknownCell();
            const bool isWhole = std::abs(s->count - std::round(s->count)) < 0.05;
            return numberCell(fmt::format("{:.{}f}", s->count, isWhole ? 0 : 1), s->count);
        };
        table.add({textCell(row.name), numberCell(signedDurationText(row.deltaNs), row.deltaNs),
                   durationCell(row.base, &KernelSummary::ns), durationCell(row.now, &KernelSummary::ns),
                   count(row.base), count(row.now)});
    }
    return section("kernels", "Kernels", "Per step and rank, mean over the ranks; those that changed most first.",
                   table.markup());
}

std::string runs(const Comparison& c) {
    Table table("runs-table", {{"side"}, {"run"}, {"label"}, {"steps", true}, {"typical step", true}});
    const auto add = [&](const char* side, const ComparedSide& of) {
        for (const ComparedRun& run : of.runs)
            table.add({textCell(side), textCell(run.name), textCell(run.label),
                       numberCell(std::to_string(run.steps), run.steps),
                       numberCell(text::durationText(run.stepNs), run.stepNs)});
    };
    add("base", c.base);
    add("new", c.now);
    return section("runs", "Runs", "", table.markup());
}

/// Leaves out what a page does not show; it stays out of the data inside too: 10,000 findings would make it too large
/// to open.
Comparison forThePage(const Comparison& whole) {
    Comparison c = whole;
    if (c.findings.size() > kRowsInPage) {
        std::vector<FindingChange> kept;
        for (const FindingChange* finding : firstFindings(whole, kRowsInPage)) kept.push_back(*finding);
        c.findings = std::move(kept);
    }
    if (c.attribution.size() > kRowsInPage) c.attribution = foldedParts(std::move(c.attribution), kRowsInPage - 1);
    const auto cut = [&c](auto& rows, size_t most, const char* what) {
        if (rows.size() <= most) return;
        c.notes.push_back(fmt::format("{} of {} {} are left out of this page: --format json has all",
                                      rows.size() - most, rows.size(), what));
        rows.resize(most);
    };
    cut(c.base.runs, kRowsInPage, "runs of the base");
    cut(c.now.runs, kRowsInPage, "runs of the new side");
    cut(c.kernels, kMostKernels, "kernels");
    cut(c.collectives, kRowsInPage, "kinds of collectives");
    cut(c.metrics, kRowsInPage, "numbers");
    cut(c.gate.reasons, kMostLines, "reasons of the gate");
    cut(c.gate.allowed, kMostLines, "allowed findings");
    cut(c.gate.notices, kMostLines, "notices of the gate");
    cut(c.losses, kMostLines, "losses");
    return c;
}

}  // namespace

std::string renderComparisonHtml(const Comparison& whole) {
    const Comparison c = forThePage(whole);
    Page page;
    page.title = titleText(whole);
    page.about = jobText(c);
    page.mood = moodOf(whole);
    page.verdict = c.step.reason;
    page.verdictMore = gateLine(c);
    page.body = tiles(whole) + warnings(c) + incomparable(c) + causes(c) + attribution(c) + stepsChart(c) +
                findings(whole) + overviewPictures(c) + breakdownBars(c) + metrics(c) + collectives(c) + kernels(c) +
                runs(c);
    page.data = renderComparisonJson(c);
    return renderPage(page);
}

}  // namespace rankscope::compare
