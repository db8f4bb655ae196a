// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs301_straggler.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/detectors/kernel_ratios.h"
#include "analyzer/report/kernel_name.h"
#include "analyzer/timeline/statistics.h"
#include "analyzer/timeline/step_model.h"

namespace rankscope::analyzer {
namespace {

constexpr StragglerThresholds kThresholds;

bool isSlow(const KernelRatio& ratio) {
    if (ratio.comparedShare < kThresholds.comparedShare || ratio.ratio < kThresholds.ratio) return false;
    if (ratio.ratio - 1 < kThresholds.errors * ratio.error) return false;
    const double halfway = 1 + (ratio.ratio - 1) / 2;
    const auto slower = std::count_if(ratio.perStep.begin(), ratio.perStep.end(), [&](double r) { return r > halfway; });
    return static_cast<double>(slower) >= kThresholds.stepsShare * static_cast<double>(ratio.perStep.size());
}

/// Exposed waiting of a rank in a step, and how much of it is for `suspect`.
struct Waiting {
    double totalNs = 0;
    double forSuspectNs = 0;
    double undecidedNs = 0;  // the clock bound hides who was last
};

Waiting waitingOf(const Analysis& analysis, const RankSummary& rank, int step, int suspect) {
    Waiting waiting;
    for (const CommTask& task : analysis.tasks(rank, step)) {
        const auto exposed = static_cast<double>(task.exposedWaitNs);
        waiting.totalNs += exposed;
        if (task.lastRank == suspect) waiting.forSuspectNs += exposed;
        if (task.lastRank < 0) waiting.undecidedNs += exposed;
    }
    return waiting;
}

/// Step time saved when the suspect computed as fast as its peers.
double savingOf(const Analysis& analysis, const RankSummary& suspect, int step, double ratio, double typicalPeerWaitNs) {
    const Attribution* own = analysis.attribution(suspect, step);
    if (own == nullptr || ratio <= 1) return 0;
    const double compute = static_cast<double>(own->computeNs);
    const double extra = compute * (1 - 1 / ratio);
    // In a pipeline the beat of the slowest stage shows as the others' waiting; behind collectives the step model tells what other work hides.
    if (analysis.layout.pipelineOf(suspect.rank) != nullptr)
        return std::clamp(typicalPeerWaitNs - static_cast<double>(own->exposedWaitNs), 0.0, extra);
    std::vector<CommTask> recorded = analysis.tasks(suspect, step);
    const std::vector<ModelTask> before = modelTasks(recorded);
    std::vector<ModelTask> after = before;
    for (ModelTask& task : after) {
        task.readyAt /= ratio;
        task.neededAt /= ratio;
    }
    return std::clamp(modelStepNs(before, compute) - modelStepNs(after, compute / ratio), 0.0, extra);
}

void addEvidence(const Analysis& analysis, const RankSummary& suspect, const KernelRatio& ratio, double lastShare, Finding& finding) {
    finding.evidence.facts.push_back(fmt::format("the same kernels take {:.2f}x as long on rank {} as on its peers (median of {} steps, +/- {:.3f})",
                                                 ratio.ratio, suspect.rank, ratio.perStep.size(), ratio.error));
    finding.evidence.numbers.emplace_back("kernel_time_ratio", ratio.ratio);
    const auto nameId = static_cast<size_t>(ratio.slowestKey.nameId);
    if (ratio.slowestRatio > 1 && nameId < analysis.facts.strings.size()) {
        finding.evidence.facts.push_back(fmt::format("most of it in {} (grid {}): {:.2f}x", readableKernelName(analysis.facts.strings[nameId]),
                                                     ratio.slowestKey.gridBlocks < 0 ? "unknown" : std::to_string(ratio.slowestKey.gridBlocks),
                                                     ratio.slowestRatio));
    }
    if (lastShare > 0) {
        finding.evidence.facts.push_back(fmt::format("{:.0f} % of its peers' exposed waiting is for rank {}", 100 * lastShare, suspect.rank));
        finding.evidence.numbers.emplace_back("wait_share_for_rank", lastShare);
    }
    // The longest waits in the typical step are the rows to look at.
    std::vector<std::pair<int64_t, EvidenceRow>> rows;
    for (const RankSummary& peer : analysis.ranks) {
        if (peer.rank == suspect.rank) continue;
        for (const CommTask& task : peer.communication) {
            if (task.startNs < finding.windowStartNs || task.startNs >= finding.windowEndNs || task.lastRank != suspect.rank) continue;
            const bool collective = task.collectiveId != 0;
            rows.push_back({task.exposedWaitNs, {collective ? "collective" : "kernel", collective ? task.collectiveId : task.kernelId, peer.rank,
                                                 fmt::format("rank {} waits {:.3f} ms for rank {}", peer.rank, static_cast<double>(task.exposedWaitNs) / 1e6, suspect.rank)}});
        }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [wait, row] : rows) {
        const bool known = std::any_of(finding.evidence.rows.begin(), finding.evidence.rows.end(),
                                       [&, id = row.id, table = row.table](const EvidenceRow& r) { return r.id == id && r.table == table; });
        if (finding.evidence.rows.size() < 5 && wait > 0 && !known) finding.evidence.rows.push_back(row);
    }
}

}  // namespace

void detectStraggler(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    if (analysis.ranks.size() < 2) return;
    const std::vector<KernelRatio> ratios = kernelRatios(analysis);
    for (size_t r = 0; r < analysis.ranks.size(); ++r) {
        if (!isSlow(ratios[r])) continue;
        const RankSummary& suspect = analysis.ranks[r];
        std::vector<double> savings;
        std::map<int, double> waitByPeer;
        double waited = 0, waitedForSuspect = 0, undecided = 0;
        for (size_t s = 0; s < analysis.steps.size(); ++s) {
            std::vector<double> peers;
            for (const RankSummary& peer : analysis.ranks) {
                if (peer.rank == suspect.rank) continue;
                const Waiting waiting = waitingOf(analysis, peer, analysis.steps[s], suspect.rank);
                peers.push_back(waiting.totalNs);
                waitByPeer[peer.rank] += waiting.totalNs;
                waited += waiting.totalNs;
                waitedForSuspect += waiting.forSuspectNs;
                undecided += waiting.undecidedNs;
            }
            const double saving = savingOf(analysis, suspect, analysis.steps[s], ratios[r].perStep[s], median(peers));
            // Whoever costs others time is waited for: the peers' waiting bounds the claim from above by kind, not by amount (hidden waits count less).
            savings.push_back(median(peers) > 0 ? saving : 0);
        }
        Finding finding;
        finding.id = "RS301";
        finding.ranks = {suspect.rank};
        setCost(analysis, savings, finding);
        setTypicalStep(analysis, savings, suspect.rank, finding);
        const double perStep = 1.0 / static_cast<double>(analysis.steps.size());
        for (const auto& [peer, wait] : waitByPeer)
            if (wait * perStep > 0.25 * *finding.savingNsPerStep) finding.affectedRanks.push_back(peer);

        const RankFacts* facts = analysis.facts.findRank(suspect.rank);
        finding.cause = fmt::format("rank {}{} computes {:.2f}x as long as its peers for the same work, and they wait for it", suspect.rank,
                                    facts->host.empty() ? "" : " (" + facts->host + ")", ratios[r].ratio);
        const double lastShare = waited > 0 ? waitedForSuspect / waited : 0;
        addEvidence(analysis, suspect, ratios[r], lastShare, finding);
        finding.fix = {
            fmt::format("check the device of rank {}{}: nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE (throttling, ECC, a neighbour's process)", suspect.rank,
                        facts->host.empty() ? "" : " on " + facts->host),
            "move the rank to another device or leave that device out; when the slowness moves with the device, replace it",
        };
        finding.confidence = std::min(0.95, 0.6 + 0.35 * std::min(1.0, (ratios[r].ratio - 1) / 0.1));
        const bool pipeline = analysis.layout.pipelineOf(suspect.rank) != nullptr;
        if (finding.verdict == Verdict::found && !pipeline && waited > 0 && undecided > waited / 2) {
            finding.verdict = Verdict::inconclusive;
            finding.whyInconclusive = fmt::format("its kernels are slower, but who arrives last is hidden by the clock bound of {:.1f} us between hosts",
                                                  static_cast<double>(analysis.facts.clock.boundNs) / 1e3);
        }
        // What costs little and rests on a step or two is not even worth a note.
        if (finding.verdict == Verdict::note && static_cast<int>(analysis.steps.size()) < CommonThresholds::kFewestSteps) continue;
        if (finding.verdict == Verdict::found) claims.takeWaiting(analysis, "RS301", {suspect.rank}, savings);
        findings.push_back(std::move(finding));
    }
}

}  // namespace rankscope::analyzer
