// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/report/bound.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/report/volume.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using text::first;

// What is beyond these is said to be in the JSON.
constexpr size_t kMostFindings = 100, kMostLosses = 50, kMostRanks = 512, kMostCollectives = 500;

std::string restText(size_t all, size_t most, const char* what) {
    return all > most ? fmt::format("\n{} of {} {} are left out: --format json has all.\n", all - most, all, what)
                      : std::string();
}

/// Makes text of the job's plain: names may hold markup.
std::string words(const std::string& text) {
    return text::markdownText(text);
}

std::string findingBlock(const Report& r, const job::Finding& f) {
    std::string out = fmt::format("\n### {} {}{}\n\n", f.id, words(f.title),
                                  f.verdict == job::Verdict::inconclusive ? " (inconclusive)" : "");
    out += fmt::format("**{}**, {}", worthText(r, f), text::ranksText(f.ranks));
    if (!f.affectedRanks.empty() && f.affectedRanks != f.ranks) out += "; waiting: " + text::ranksText(f.affectedRanks);
    out += ".\n\n" + words(f.cause) + ".\n";
    if (!f.whyInconclusive.empty()) out += "\nInconclusive: " + words(f.whyInconclusive) + ".\n";
    out += "\n";
    for (const std::string& fact : f.evidence.facts) out += "- " + words(fact) + "\n";
    out += "\nFix:\n\n";
    for (const std::string& fix : f.fix) out += "- " + words(fix) + "\n";
    return out + "\nPredicted saving: " + words(savingText(r, f)) + ".\n";
}

}  // namespace

std::string renderMarkdown(const Report& r) {
    std::string out = fmt::format("# Rankscope: {}\n\n", r.run.name.empty() ? "run" : words(r.run.name));
    if (r.run.isRecorder) {
        out += fmt::format("{}; {}.\n", ranksOnHostsText(r.run), whatIsThereText(r.run));
    } else {
        out += fmt::format("{}, step {} (median of {}).\n", ranksOnHostsText(r.run), text::durationText(r.run.stepNs),
                           r.run.steps);
    }
    if (r.run.hosts.size() > 1) out += fmt::format("Arrival times are good to {}.\n", boundText(r.clock.boundNs));
    if (r.run.worldSize.value_or(static_cast<int>(r.run.ranks.size())) > 1 && !r.run.isRecorder)
        out += "\nLink peaks: " + words(costs::linkPeaksText(r.linkPeaks, r.run.hosts.size())) + ".\n";
    if (r.run.stepNs > 0) out += "\n" + words(replayText(r.replay)) + ".\n";
    if (const std::string bound = boundLine(r); !bound.empty()) out += "\n" + bound + ".\n";
    const std::vector<LossLine> losses = lossLines(r.losses);
    for (const LossLine& loss : first(losses, kMostLosses))
        out += fmt::format("\n> {}: {}\n", loss.severity, words(loss.text));
    out += restText(losses.size(), kMostLosses, "losses");

    out += fmt::format("\n## Findings\n\n{}\n", words(verdictText(r)));
    for (const std::string& fact : unexplainedFacts(r.accounting)) out += fmt::format("\n- {}", words(fact));
    if (!r.accounting.unexplained.empty()) out += "\n";
    if (r.replay.ceiling && r.replay.ceiling->findings > 1)
        out += "\n" + ceilingText(*r.replay.ceiling, r.replay.ceiling->findings) + "\n";
    for (const job::Finding& finding : first(r.findings, kMostFindings)) out += findingBlock(r, finding);
    out += restText(r.findings.size(), kMostFindings, "findings");
    if (!r.notes.empty()) {
        out += "\n## Notes\n\n";
        for (const job::Finding& note : first(r.notes, kMostFindings)) out += "- " + words(noteText(note)) + "\n";
        out += restText(r.notes.size(), kMostFindings, "notes");
    }
    if (!r.notJudged.empty()) {
        out += "\n## Not judged\n\nFor what the recording lacks:\n\n";
        for (const std::string& line : notJudgedLines(r.notJudged)) out += fmt::format("- {}\n", words(line));
    }
    out +=
        "\n## Where the time goes (% of the step)\n\n| rank | compute | waiting | transfer | memory | idle | hidden "
        "communication |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (const BreakdownRow& row : first(r.breakdown, kMostRanks)) {
        const double step = row.total.stepNs > 0 ? static_cast<double>(row.total.stepNs) : 1;
        const auto share = [&](int64_t ns) { return 100 * static_cast<double>(ns) / step; };
        const std::string waiting = row.splitKnown ? fmt::format("{:.1f}", share(row.total.exposedWaitNs)) : "unknown";
        const std::string transfer = row.splitKnown ? fmt::format("{:.1f}", share(row.total.exposedTransferNs))
                                                    : fmt::format("≤ {:.1f}", share(row.total.exposedCommNs()));
        out += fmt::format("| {} | {:.1f} | {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", row.rank,
                           share(row.total.computeNs), waiting, transfer, share(row.total.memoryNs),
                           share(row.total.idleNs), share(row.total.overlappedCommNs));
    }
    out += restText(r.breakdown.size(), kMostRanks, "ranks");
    if (const std::string idle = idleText(r); !idle.empty()) out += "\n" + words(idle) + ".\n";
    for (const std::string& line : delayLines(r)) out += "\n" + words(line) + ".\n";
    out += "\n## Collectives\n\nPer rank and step; waiting and transfer hold what is hidden behind compute, too.\n\n";
    out +=
        "| op | size | group | calls | waiting | transfer | busbw |\n| --- | --- | --- | ---: | ---: | ---: | ---: |\n";
    for (const CollectiveRow& row : first(r.collectives, kMostCollectives)) {
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", words(row.op), row.sizeClass,
                           row.group.empty() ? "unknown" : words(row.group), countText(row.countPerStep),
                           knownDurationText(row.waitNsPerRankStep), knownDurationText(row.transferNsPerRankStep),
                           row.busbw ? text::bandwidthText(*row.busbw) : "unknown");
    }
    out += restText(r.collectives.size(), kMostCollectives, "kinds of collectives");
    for (const VolumeRow& row : r.volumes) out += "\n" + words(volumeText(row)) + ".\n";
    return text::cutForSummary(std::move(out));
}

}  // namespace rankscope::report
