// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <set>

#include "analyzer/report/bound.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/report_sections.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using namespace html;

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
                    r.run.steps > 0 ? fmt::format("median of {}, {} left out", r.run.steps, r.run.warmUpSteps)
                                    : "the whole recording as one");
    if (r.bound.isMeasured) {
        const std::string text = boundByText(r.bound);
        out += tile("Verdict", toText(r.bound.by), text.substr(text.find(": ") + 2));
    }
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
    if (!r.run.isRecorder)
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
    for (const LossLine& line : text::first(lines, kMost)) {
        const std::string severity = text::markupText(line.severity);
        out += fmt::format("<li class=\"{}\"><b>{}</b>: {}</li>\n", severity, severity, text::markupText(line.text));
    }
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

std::string notes(const Report& r, size_t all) {
    if (r.notes.empty()) return {};
    std::string out = "<ul>\n";
    for (const job::Finding& note : r.notes) out += "<li>" + text::markupText(noteText(note)) + "</li>\n";
    if (all > r.notes.size()) out += fmt::format("<li>{} of {} notes are shown</li>\n", r.notes.size(), all);
    return section("notes", "Notes", "Listed, but not worth a repair by themselves.", out + "</ul>\n");
}

std::string notJudged(const Report& r) {
    if (r.notJudged.empty()) return {};
    std::string out = "<ul>\n";
    for (const std::string& line : notJudgedLines(r.notJudged)) out += "<li>" + text::markupText(line) + "</li>\n";
    return section("not-judged", "Not judged", "Diagnoses whose input the recording lacks, and what they need.",
                   out + "</ul>\n");
}

std::string background(const Report& r) {
    if (r.run.isRecorder)
        return section("background", "What this rests on", "",
                       "<p>" + text::markupText("Dumps" + whatIsThereText(r.run).substr(5)) + ".</p>\n");
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
    page.about = r.run.isRecorder ? fmt::format("{}; {}", ranksOnHostsText(r.run), whatIsThereText(r.run))
                                  : fmt::format("{}, layout {}", ranksOnHostsText(r.run), layoutText(r.layout));
    const size_t found = certainFindings(whole);
    page.mood = found > 0 ? Mood::bad : isClean(whole) ? Mood::good : Mood::warn;
    page.verdict = verdictText(whole);
    if (found > 1 && r.replay.ceiling) page.verdictMore = ceilingText(*r.replay.ceiling, found);
    page.body = tiles(r) + losses(r) + overviewSection(r) + findings(r, whole.findings.size()) + breakdownSection(r);
    page.body += "<div class=\"pair\">\n" + efficienciesSection(r) + criticalPathSection(r) + stepSection(r) +
                 bandwidthSection(r) + idleSection(r) + "</div>\n";
    page.body += collectivesSection(r) + memorySection(r) + notes(r, whole.notes.size()) + notJudged(r) + background(r);
    page.data = renderJson(r);
    return renderPage(page);
}

}  // namespace rankscope::report
