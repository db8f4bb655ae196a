// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using text::first;
using text::Painter;
using text::Shade;

// Text on a terminal or in a file, in colour or not.
class Lines {
  public:
    Lines(const Painter& paint, size_t columns) : m_paint(paint), m_columns(columns) {}
    std::string operator()(Shade shade, std::string_view text) const { return m_paint(shade, text); }
    std::string bold(std::string_view text) const { return m_paint.bold(text); }
    std::string wrapped(std::string_view text, std::string_view first = {}) const {
        return text::wrapped(text, first, m_columns);
    }

  private:
    Painter m_paint;
    size_t m_columns;
};

Shade shadeOf(const LossLine& loss) {
    return loss.severity == "error" ? Shade::red : loss.severity == "warning" ? Shade::yellow : Shade::dim;
}

void addLosses(std::span<const LossLine> lines, const Lines& paint, std::string& out) {
    for (const LossLine& loss : lines)
        out += paint(shadeOf(loss), fmt::format("{}: {}", loss.severity, text::plainText(loss.text))) + "\n";
}

// Losses that may change the answer stand in front of it, as many as leave it on the same screen; all others are told
// with what the answer rests on.
struct LossParts {
    std::vector<LossLine> front, rest;
    size_t severeInRest = 0;
};

LossParts lossParts(const Report& r) {
    constexpr size_t kMostInFront = 5;
    LossParts parts;
    for (const LossLine& loss : lossLines(r.losses)) {
        const bool isSevere = loss.severity == "error" || loss.severity == "warning";
        const bool fits = isSevere && parts.front.size() < kMostInFront;
        (fits ? parts.front : parts.rest).push_back(loss);
        parts.severeInRest += isSevere && !fits;
    }
    return parts;
}

void addHead(const Report& r, const LossParts& losses, const Lines& paint, std::string& out) {
    const std::string name = r.run.name.empty() ? "this run" : text::oneLine(r.run.name);
    out += paint.bold(fmt::format("{}: {}", name, ranksOnHostsText(r.run))) + "\n";
    if (r.run.steps > 0) {
        out += fmt::format("step {} (median of {}{}; {})\n", text::durationText(r.run.stepNs), r.run.steps,
                           r.run.warmUpSteps > 0 ? fmt::format(", {} left out", r.run.warmUpSteps) : "",
                           stepSourceText(r.run.stepSource));
    } else if (r.run.stepNs > 0) {
        out += paint.wrapped(
            fmt::format("no steps found: the {} of device activity are analysed as one; name them by NVTX "
                        "ranges ProfilerStep#N for what needs steps",
                        text::durationText(r.run.stepNs)));
    } else {
        out += whatIsThereText(r.run) + "\n";
    }
    if (const std::string path = criticalPathText(r.replay); !path.empty()) out += path + "\n";
    if (!r.run.isRecorder) out += fmt::format("layout {}\n", layoutText(r.layout));
    addLosses(losses.front, paint, out);
    if (losses.severeInRest > 0)
        out += fmt::format("and {} more of such, at the end of this report\n", losses.severeInRest);
    out += "\n";
}

void addBasis(const Report& r, const LossParts& losses, const Lines& paint, std::string& out) {
    constexpr size_t kMost = 50;
    std::string lines;
    if (r.run.stepNs > 0) lines += replayText(r.replay) + "\n";
    if (r.run.hosts.size() > 1)
        lines +=
            fmt::format("clocks aligned by {}, arrival times good to {}\n", r.clock.method, boundText(r.clock.boundNs));
    if (r.run.worldSize.value_or(static_cast<int>(r.run.ranks.size())) > 1 && !r.run.isRecorder)
        lines += paint.wrapped("link peaks: " + text::plainText(costs::linkPeaksText(r.linkPeaks, r.run.hosts.size())));
    addLosses(first(losses.rest, kMost), paint, lines);
    if (losses.rest.size() > kMost)
        lines += fmt::format("and {} more losses: --format json lists them\n", losses.rest.size() - kMost);
    if (!lines.empty()) out += "\n" + paint.bold("What this rests on") + "\n" + lines;
}

void addHeadline(const Report& r, const Lines& paint, std::string& out) {
    if (r.run.stepNs <= 0 && r.findings.empty() && r.death.empty() && !r.run.isRecorder) return;
    const size_t found = certainFindings(r);
    const Shade shade = found > 0 ? Shade::bold : isClean(r) ? Shade::green : Shade::yellow;
    std::string verdict = paint.wrapped(text::plainText(verdictText(r)));
    verdict.pop_back();
    out += paint(shade, verdict) + "\n";
    for (const std::string& fact : unexplainedFacts(r.accounting)) out += paint.wrapped(text::plainText(fact), "  ");
    if (found > 1 && r.replay.ceiling) out += ceilingText(*r.replay.ceiling, found) + "\n";
}

void addFinding(const Report& r, const std::string& name, const job::Finding& f, const Lines& paint, std::string& out) {
    const bool open = f.verdict == job::Verdict::inconclusive;
    out += "\n" + paint(open ? Shade::yellow : Shade::red, f.id) + " " + paint.bold(text::plainText(f.title)) +
           (open ? " (inconclusive)" : "") + ", " + worthText(r, f) + "\n";
    out += "  where   " + text::ranksText(f.ranks);
    for (const auto& [rank, host] : r.hostOfRank)
        if (f.ranks.size() == 1 && f.ranks.front() == rank && !host.empty()) out += " on " + text::oneLine(host);
    if (f.communicator) out += ", " + text::oneLine(groupText(r, *f.communicator));
    if (!f.affectedRanks.empty() && f.affectedRanks != f.ranks)
        out += "; " + text::ranksText(f.affectedRanks) + (f.affectedRanks.size() == 1 ? " waits" : " wait");
    out += "\n" + paint.wrapped(text::plainText(f.cause), "  why     ");
    if (open) out += paint.wrapped(text::plainText(f.whyInconclusive), "  but     ");
    for (size_t i = 0; i < f.evidence.facts.size(); ++i)
        out += paint.wrapped(text::plainText(f.evidence.facts[i]), i == 0 ? "  shown   " : "          ");
    if (f.windowEndNs > f.windowStartNs) out += paint.wrapped(bestSeenText(r, f), "          ");
    for (size_t i = 0; i < f.fix.size(); ++i)
        out += paint(Shade::green, i == 0 ? "  fix     " : "          ") + text::plainText(f.fix[i]) + "\n";
    out += "  saves   " + text::plainText(savingText(r, f)) + "\n";
    if (f.savingNs) out += fmt::format("  what if rankscope whatif {}{}\n", name, job::asOptions(f.changes));
}

void addNotJudged(const Report& r, const Lines& paint, std::string& out) {
    if (r.notJudged.empty()) return;
    out += "\n" + paint.bold("Not judged") + ", for what the recording lacks\n";
    for (const std::string& line : notJudgedLines(r.notJudged)) out += paint.wrapped(line, "  ");
}

std::string shareRow(const std::string& who, const facts::Attribution& a, bool splitKnown) {
    const double step = std::max<double>(1, static_cast<double>(a.stepNs));
    const auto share = [&](int64_t ns) { return 100 * static_cast<double>(ns) / step; };
    const std::string waiting = splitKnown ? fmt::format("{:.1f}", share(a.exposedWaitNs)) : "?";
    const std::string transfer = splitKnown ? fmt::format("{:.1f}", share(a.exposedTransferNs))
                                            : fmt::format("<={:.1f}", share(a.exposedCommNs()));
    return fmt::format("  {:<8}{:>9.1f}{:>9}{:>10}{:>9.1f}{:>8.1f}{:>12.1f}\n", who, share(a.computeNs), waiting,
                       transfer, share(a.memoryNs), share(a.idleNs), share(a.overlappedCommNs));
}

void addBreakdown(const Report& r, const Lines& paint, std::string& out) {
    constexpr size_t kMostRankRows = 16;  // a breakdown of more ranks is summed up
    if (r.breakdown.empty() || r.run.stepNs <= 0) return;
    out += "\n" + paint.bold("Where the time goes") +
           ", in % of the step (compute + waiting + transfer + memory + idle = 100)\n";
    out += paint(Shade::dim, fmt::format("  {:<8}{:>9}{:>9}{:>10}{:>9}{:>8}{:>12}", "rank", "compute", "waiting",
                                         "transfer", "memory", "idle", "hidden comm")) +
           "\n";
    if (r.breakdown.size() <= kMostRankRows) {
        for (const BreakdownRow& row : r.breakdown)
            out += shareRow(std::to_string(row.rank), row.total, row.splitKnown);
    } else {
        // Too many to read: the whole, and the ranks at both ends of the one column that tells them apart.
        facts::Attribution all;
        for (const BreakdownRow& row : r.breakdown) all += row.total;
        std::vector<BreakdownRow> rows = r.breakdown;
        std::ranges::stable_sort(
            rows, [](const BreakdownRow& a, const BreakdownRow& b) { return a.total.computeNs > b.total.computeNs; });
        const bool allKnown = std::ranges::all_of(r.breakdown, &BreakdownRow::splitKnown);
        out += shareRow("all", all, allKnown);
        for (size_t i = 0; i < 4; ++i) out += shareRow(std::to_string(rows[i].rank), rows[i].total, rows[i].splitKnown);
        out += "  ...\n";
        for (size_t i = rows.size() - 4; i < rows.size(); ++i)
            out += shareRow(std::to_string(rows[i].rank), rows[i].total, rows[i].splitKnown);
        out += paint(Shade::dim, fmt::format("  the 4 ranks with most and least compute of {}", rows.size())) + "\n";
    }
    if (!std::ranges::all_of(r.breakdown, &BreakdownRow::splitKnown))
        out += paint(Shade::dim,
                     "  ?: some ranks it communicates with are not recorded; how much of the next column is waiting "
                     "for them is unknown") +
               "\n";
    if (const std::string idle = idleText(r); !idle.empty()) out += paint.wrapped(idle, "  ");
    for (const std::string& line : delayLines(r)) out += paint.wrapped(line, "  ");
    if (r.efficiency.parallel && !r.efficiency.loadBalance) {
        out += fmt::format("  parallel efficiency {}; load balance unknown: one rank is recorded\n",
                           text::percentText(*r.efficiency.parallel));
    } else if (r.efficiency.parallel && r.efficiency.transfer) {
        out += fmt::format("  parallel efficiency {} = load balance {} x serialisation {} x transfer {}\n",
                           text::percentText(*r.efficiency.parallel), text::percentText(*r.efficiency.loadBalance),
                           text::percentText(*r.efficiency.serialisation), text::percentText(*r.efficiency.transfer));
    } else if (r.efficiency.parallel) {
        out += fmt::format("  parallel efficiency {} = load balance {} x serialisation and transfer {}\n",
                           text::percentText(*r.efficiency.parallel), text::percentText(*r.efficiency.loadBalance),
                           text::percentText(*r.efficiency.serialisation));
    }
}

void addCollectives(const Report& r, const Lines& paint, std::string& out) {
    if (r.collectives.empty()) return;
    constexpr size_t kMost = 8;
    out += "\n" + paint.bold("Collectives") +
           ", per rank and step; waiting and transfer hold what is hidden behind compute, too\n";
    size_t width = 5;
    for (const CollectiveRow& row : first(r.collectives, kMost))
        width = std::max(width, text::oneLine(row.group).size());
    const auto line = [&](const auto& op, const auto& size, const auto& group, const auto& calls, const auto& waiting,
                          const auto& transfer, const auto& busbw, const auto& last) {
        return fmt::format("  {:<15}{:<20}{:<{}}{:>7}{:>10}{:>10}{:>12}  {}", op, size, group, width, calls, waiting,
                           transfer, busbw, last);
    };
    out +=
        paint(Shade::dim, line("op", "size", "group", "calls", "waiting", "transfer", "busbw", "last of all")) + "\n";
    for (const CollectiveRow& row : first(r.collectives, kMost))
        out += line(row.op, row.sizeClass, row.group.empty() ? "unknown" : text::oneLine(row.group),
                    countText(row.countPerStep), knownDurationText(row.waitNsPerRankStep),
                    knownDurationText(row.transferNsPerRankStep),
                    row.busbw ? text::bandwidthText(*row.busbw) : "unknown", lastText(row, 3)) +
               "\n";
    if (r.collectives.size() > kMost)
        out +=
            paint(Shade::dim, fmt::format("  and {} more kind{}: --format json lists them",
                                          r.collectives.size() - kMost, r.collectives.size() == kMost + 1 ? "" : "s")) +
            "\n";
}

}  // namespace

std::string renderText(const Report& r, const TextStyle& style) {
    const Lines paint(Painter(style.colour), style.columns);
    std::string out;
    const LossParts losses = lossParts(r);
    addHead(r, losses, paint, out);
    addHeadline(r, paint, out);
    const std::string name = text::shellWord(!style.runName.empty() ? style.runName
                                             : !r.run.name.empty()  ? r.run.name
                                                                    : "NAME");
    constexpr size_t kMost = 200;
    for (const job::Finding& finding : first(r.findings, kMost)) addFinding(r, name, finding, paint, out);
    if (r.findings.size() > kMost)
        out += fmt::format("\n  and {} more findings: --format json lists them\n", r.findings.size() - kMost);
    if (!r.notes.empty()) {
        out += "\n" + paint.bold("Notes") + ", not worth a repair by themselves\n";
        for (const job::Finding& note : first(r.notes, kMost)) out += "  " + text::plainText(noteText(note)) + "\n";
        if (r.notes.size() > kMost)
            out += fmt::format("  and {} more: --format json lists them\n", r.notes.size() - kMost);
    }
    addNotJudged(r, paint, out);
    addBreakdown(r, paint, out);
    addCollectives(r, paint, out);
    addBasis(r, losses, paint, out);
    if (!r.findings.empty()) {
        out += fmt::format("\nNext: rankscope explain {}\n", r.findings.front().id);
        const bool settings = std::ranges::any_of(r.findings, [](const job::Finding& finding) {
            const diagnose::Diagnosis* entry = diagnose::findDiagnosis(finding.id);
            return entry != nullptr && entry->hasSettings;
        });
        if (settings) out += fmt::format("      rankscope recommend {}\n", name);
    } else {
        out += fmt::format("\nNext: rankscope view {}\n      rankscope analyze {} --format html -o {}.html\n", name,
                           name, name);
    }
    return out;
}

}  // namespace rankscope::report
