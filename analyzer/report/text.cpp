// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/report/bound.h"
#include "analyzer/report/memory.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/report/volume.h"
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
    /// `first` and the text in their shades; commands in the text stay on a line, so that they can be pasted.
    std::string wrapped(Shade firstShade, std::string_view first, std::string_view text) const {
        const std::string lines =
            text::withPlainSpaces(text::wrapped(text::withUnbrokenCommands(text), first, m_columns));
        return m_paint(firstShade, lines.substr(0, first.size())) + lines.substr(first.size());
    }
    bool fits(size_t width) const { return width <= m_columns; }

  private:
    Painter m_paint;
    size_t m_columns;
};

Shade shadeOf(const LossLine& loss) {
    return loss.severity == "error" ? Shade::red : loss.severity == "warning" ? Shade::yellow : Shade::dim;
}

void addLosses(std::span<const LossLine> lines, const Lines& paint, std::string& out) {
    for (const LossLine& loss : lines) {
        std::string text = paint.wrapped(fmt::format("{}: {}", loss.severity, text::plainText(loss.text)));
        text.pop_back();
        out += paint(shadeOf(loss), text) + "\n";
    }
}

// Losses that may change the answer stand right behind it, as many as leave both on the same screen; all others are
// told with what the answer rests on.
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

void addName(const Report& r, const Lines& paint, std::string& out) {
    const std::string name = r.run.name.empty() ? "this run" : text::oneLine(r.run.name);
    out += paint.bold(fmt::format("{}: {}", name, ranksOnHostsText(r.run))) + "\n";
}

void addFrontLosses(const LossParts& losses, const Lines& paint, std::string& out) {
    addLosses(losses.front, paint, out);
    if (losses.severeInRest > 0)
        out += fmt::format("and {} more of such, at the end of this report\n", losses.severeInRest);
}

void addStep(const Report& r, const Lines& paint, std::string& out) {
    if (r.run.steps > 0) {
        out += paint.wrapped(fmt::format("step {} (median of {}{}; {})", text::durationText(r.run.stepNs), r.run.steps,
                                         r.run.warmUpSteps > 0 ? fmt::format(", {} left out", r.run.warmUpSteps) : "",
                                         stepSourceText(r.run.stepSource)));
    } else if (r.run.stepNs > 0) {
        out += paint.wrapped(
            fmt::format("no steps found: the {} of device activity are analysed as one; name them by NVTX "
                        "ranges ProfilerStep#N for what needs steps",
                        text::durationText(r.run.stepNs)));
    } else {
        out += paint.wrapped(whatIsThereText(r.run));
    }
    if (const std::string bound = boundLine(r); !bound.empty()) out += paint.wrapped(bound);
    if (!r.run.isRecorder) out += paint.wrapped("layout " + layoutText(r.layout));
}

void addBasis(const Report& r, const LossParts& losses, const Lines& paint, std::string& out) {
    constexpr size_t kMost = 50;
    std::string lines;
    if (r.run.stepNs > 0) lines += paint.wrapped(replayText(r.replay));
    if (r.run.hosts.size() > 1)
        lines += paint.wrapped(fmt::format("clocks aligned by {}, arrival times good to {}",
                                           text::oneLine(r.clock.method), boundText(r.clock.boundNs)));
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
    if (found > 1 && r.replay.ceiling) out += paint.wrapped(ceilingText(*r.replay.ceiling, found));
}

void addFinding(const Report& r, const std::string& name, const job::Finding& f, const Lines& paint, std::string& out) {
    const bool open = f.verdict == job::Verdict::inconclusive;
    out += "\n" + paint(open ? Shade::yellow : Shade::red, f.id) + " " + paint.bold(text::plainText(f.title)) +
           (open ? " (inconclusive)" : "") + ", " + worthText(r, f) + "\n";
    std::string where = text::ranksText(f.ranks);
    for (const auto& [rank, host] : r.hostOfRank)
        if (f.ranks.size() == 1 && f.ranks.front() == rank && !host.empty()) where += " on " + text::oneLine(host);
    if (f.communicator) where += ", " + text::oneLine(groupText(r, *f.communicator));
    if (!f.affectedRanks.empty() && f.affectedRanks != f.ranks)
        where += "; " + text::ranksText(f.affectedRanks) + (f.affectedRanks.size() == 1 ? " waits" : " wait");
    out += paint.wrapped(where, "  where   ") + paint.wrapped(text::plainText(f.cause), "  why     ");
    if (open) out += paint.wrapped(text::plainText(f.whyInconclusive), "  but     ");
    for (size_t i = 0; i < f.evidence.facts.size(); ++i)
        out += paint.wrapped(text::plainText(f.evidence.facts[i]), i == 0 ? "  shown   " : "          ");
    if (f.windowEndNs > f.windowStartNs) out += paint.wrapped(bestSeenText(r, f), "          ");
    for (size_t i = 0; i < f.fix.size(); ++i)
        out += paint.wrapped(Shade::green, i == 0 ? "  fix     " : "          ", text::plainText(f.fix[i]));
    out += paint.wrapped(text::plainText(savingText(r, f)), "  saves   ");
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

std::string efficiencyText(const Efficiency& efficiency) {
    if (!efficiency.parallel) return {};
    const std::string parallel = "parallel efficiency " + text::percentText(*efficiency.parallel);
    if (!efficiency.loadBalance) return parallel + "; load balance unknown: one rank is recorded";
    const std::string balance = parallel + " = load balance " + text::percentText(*efficiency.loadBalance),
                      rest = text::percentText(*efficiency.serialisation);
    if (!efficiency.transfer) return fmt::format("{} x serialisation and transfer {}", balance, rest);
    return fmt::format("{} x serialisation {} x transfer {}", balance, rest, text::percentText(*efficiency.transfer));
}

void addBreakdown(const Report& r, const Lines& paint, std::string& out) {
    constexpr size_t kMostRankRows = 16;  // a breakdown of more ranks is summed up
    if (r.breakdown.empty() || r.run.stepNs <= 0) return;
    out += "\n" + paint.bold("Where the time goes") + ", in % of the step\n";
    out += paint(Shade::dim, "  compute + waiting + transfer + memory + idle = 100") + "\n";
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
        out += paint.wrapped(
            "?: some ranks it communicates with are not recorded; how much of the next column is waiting for them is "
            "unknown",
            "  ");
    if (const std::string idle = idleText(r); !idle.empty()) out += paint.wrapped(idle, "  ");
    for (const std::string& line : delayLines(r)) out += paint.wrapped(line, "  ");
    if (const std::string memory = memoryText(r.memory); !memory.empty()) out += paint.wrapped(memory, "  ");
    if (const std::string states = statesText(r.volumes, r.memory); !states.empty()) out += paint.wrapped(states, "  ");
    if (const std::string efficiency = efficiencyText(r.efficiency); !efficiency.empty())
        out += paint.wrapped(efficiency, "  ");
}

struct CollectiveWords {
    std::string group, waiting, transfer, busbw, last;
};

CollectiveWords wordsOf(const CollectiveRow& row) {
    return {row.group.empty() ? "unknown" : text::oneLine(row.group), knownDurationText(row.waitNsPerRankStep),
            knownDurationText(row.transferNsPerRankStep), row.busbw ? text::bandwidthText(*row.busbw) : "unknown",
            lastText(row, 3)};
}

/// A row where there is no room for a table.
std::string collectiveText(const CollectiveRow& row) {
    const CollectiveWords words = wordsOf(row);
    return fmt::format("{} of {}, group {}: {} calls, waiting {}, transfer {}, busbw {}, last of all {}", row.op,
                       row.sizeClass, words.group, countText(row.countPerStep), words.waiting, words.transfer,
                       words.busbw, words.last);
}

/// Empty where it is wider than a line may be.
std::string collectiveTableText(std::span<const CollectiveRow> rows, const Lines& paint) {
    size_t width = 5, last = 11;
    for (const CollectiveRow& row : rows) {
        const CollectiveWords words = wordsOf(row);
        width = std::max(width, words.group.size());
        last = std::max(last, words.last.size());
    }
    const auto line = [&](const auto& op, const auto& size, const auto& calls, const CollectiveWords& words) {
        return fmt::format("  {:<15}{:<20}{:<{}}{:>7}{:>10}{:>10}{:>12}  {}", op, size, words.group, width, calls,
                           words.waiting, words.transfer, words.busbw, words.last);
    };
    const std::string head = line("op", "size", "calls", {"group", "waiting", "transfer", "busbw", "last of all"});
    if (!paint.fits(head.size() - std::string_view("last of all").size() + last)) return {};
    std::string out = paint(Shade::dim, head) + "\n";
    for (const CollectiveRow& row : rows)
        out += line(row.op, row.sizeClass, countText(row.countPerStep), wordsOf(row)) + "\n";
    return out;
}

void addCollectives(const Report& r, const Lines& paint, std::string& out) {
    if (r.collectives.empty() && r.volumes.empty()) return;
    constexpr size_t kMost = 8;
    out += "\n" + paint.bold(r.collectives.empty() ? "Messages" : "Collectives") + "\n";
    if (!r.collectives.empty()) {
        out += paint.wrapped("per rank and step; waiting and transfer hold what is hidden behind compute, too", "  ");
        const std::string table = collectiveTableText(first(r.collectives, kMost), paint);
        out += table;
        if (table.empty())
            for (const CollectiveRow& row : first(r.collectives, kMost))
                out += paint.wrapped(collectiveText(row), "  ");
    }
    for (const VolumeRow& row : r.volumes) out += paint.wrapped(volumeText(row), "  ");
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
    addName(r, paint, out);
    addHeadline(r, paint, out);
    addFrontLosses(losses, paint, out);
    addStep(r, paint, out);
    const std::string name = text::shellWord(!style.runName.empty() ? style.runName
                                             : !r.run.name.empty()  ? r.run.name
                                                                    : "NAME");
    constexpr size_t kMost = 200;
    for (const job::Finding& finding : first(r.findings, kMost)) addFinding(r, name, finding, paint, out);
    if (r.findings.size() > kMost)
        out += fmt::format("\n  and {} more findings: --format json lists them\n", r.findings.size() - kMost);
    if (!r.notes.empty()) {
        out += "\n" + paint.bold("Notes") + ", not worth a repair by themselves\n";
        for (const job::Finding& note : first(r.notes, kMost))
            out += paint.wrapped(text::plainText(noteText(note)), "  ");
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
