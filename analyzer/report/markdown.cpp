// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/report/loss_text.h"
#include "analyzer/report/markdown_text.h"
#include "analyzer/report/nothing_found.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/replay_text.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

/// Text of the job's: names may hold markup.
std::string words(const std::string& text) { return markdownText(text); }

std::string findingBlock(const Report& r, const Finding& f) {
    std::string out = fmt::format("\n### {} {}{}\n\n", f.id, words(f.title), f.verdict == Verdict::inconclusive ? " (inconclusive)" : "");
    out += fmt::format("**{} of the step**, {}", percentText(f.severity), ranksText(f.ranks));
    if (!f.affectedRanks.empty() && f.affectedRanks != f.ranks) out += "; waiting: " + ranksText(f.affectedRanks);
    out += ".\n\n" + words(f.cause) + ".\n";
    if (!f.whyInconclusive.empty()) out += "\nInconclusive: " + words(f.whyInconclusive) + ".\n";
    out += "\n";
    for (const std::string& fact : f.evidence.facts) out += "- " + words(fact) + "\n";
    out += "\nFix:\n\n";
    for (const std::string& fix : f.fix) out += "- " + words(fix) + "\n";
    if (f.savingNsPerStep) {
        out += fmt::format("\nPredicted saving: {} per step ({}), {}, confidence {:.0f} %.\n", durationText(*f.savingNsPerStep),
                           percentText(savingShare(f, r.run.stepNs)), f.savingReplayed ? "replayed" : "estimated", 100 * f.confidence);
    }
    return out;
}

}  // namespace

std::string renderMarkdown(const Report& r) {
    std::string out = fmt::format("# Rankscope: {}\n\n", r.run.name.empty() ? "run" : words(r.run.name));
    out += fmt::format("{} ranks on {} host(s){}, step {} (median of {}).\n", r.run.worldSize, r.run.hosts.size(), r.run.isVirtual ? ", virtual GPUs" : "",
                       durationText(r.run.stepNs), r.run.steps);
    if (r.run.hosts.size() > 1) out += fmt::format("Arrival times are good to {}.\n", durationText(static_cast<double>(r.clock.boundNs)));
    if (r.run.stepNs > 0) out += "\n" + words(replayText(r.replay)) + ".\n";
    if (const std::string path = criticalPathText(r.replay); !path.empty()) out += "\n" + path + ".\n";
    for (const LossRow& loss : r.losses) out += fmt::format("\n> {}: {}\n", loss.severity, words(lossText(loss)));

    out += fmt::format("\n## Findings\n{}", r.findings.empty() ? "\n" + nothingFoundText(r) + "\n" : "");
    if (r.replay.ceiling && r.replay.ceiling->findings > 1) out += "\n" + ceilingText(*r.replay.ceiling, r.replay.ceiling->findings) + "\n";
    for (const Finding& finding : r.findings) out += findingBlock(r, finding);
    if (!r.notes.empty()) {
        out += "\n## Notes\n\n";
        for (const Finding& note : r.notes) out += fmt::format("- {} {}: {} ({})\n", note.id, words(note.title), words(note.cause), percentText(note.severity));
    }
    out += "\n## Where the time goes (% of the step)\n\n| rank | compute | waiting | transfer | memory | idle | hidden communication |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (const BreakdownRow& row : r.breakdown) {
        const double step = row.total.stepNs > 0 ? static_cast<double>(row.total.stepNs) : 1;
        const auto share = [&](int64_t ns) { return 100 * static_cast<double>(ns) / step; };
        out += fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", row.rank, share(row.total.computeNs), share(row.total.exposedWaitNs),
                           share(row.total.exposedTransferNs), share(row.total.memoryNs), share(row.total.idleNs), share(row.total.overlappedCommNs));
    }
    out += "\n## Collectives\n\n| op | size | ranks | count | waiting | transfer | busbw |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
    for (const CollectiveRow& row : r.collectives) {
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", words(row.op), row.sizeClass, row.ranks, row.count, durationText(static_cast<double>(row.waitNs)),
                           row.transferNs ? durationText(static_cast<double>(*row.transferNs)) : "unknown",
                           row.busbw ? bandwidthText(*row.busbw) : "unknown");
    }
    return out;
}

}  // namespace rankscope::analyzer
