// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/kernel_ratios.h"
#include "analyzer/replay/simulate.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs102 {
namespace {

constexpr Threshold kExcess{"excess", 0.04, "of the mean stage",
                            "an embedding lookup, a loss and the noise of kernels leave up to this much in sound jobs"};
constexpr Threshold kSlower{"slower", 1.03, "x the peers' kernel time",
                            "that part is a slow device (RS301), not more work"};

/// By how much each stage's devices are slower than their peers at the same kernels.
std::vector<double> slownessOf(const job::Analysis& analysis, const job::PipelineTimes& times) {
    const std::vector<job::KernelRatio>& ratios = analysis.kernelRatios;
    std::vector<double> slowness;
    for (const std::vector<int>& ranks : times.ranks) {
        double sum = 0, count = 0;
        for (size_t r = 0; r < analysis.ranks.size(); ++r) {
            if (std::find(ranks.begin(), ranks.end(), analysis.ranks[r].rank) == ranks.end()) continue;
            const job::KernelRatio& ratio = ratios[r];
            sum += ratio.ratio > kSlower ? 1 + (ratio.ratio - 1) * ratio.comparedShare : 1;
            ++count;
        }
        slowness.push_back(count > 0 ? sum / count : 1);
    }
    return slowness;
}

/// Kernels and blocks of one stage in a step, per rank.
struct Launches {
    double kernels = 0;
    double blocks = 0;
};

Launches launchesOf(const job::Analysis& analysis, const std::vector<int>& ranks, int step) {
    Launches sum;
    double count = 0;
    for (int rank : ranks) {
        const facts::RankSummary* summary = analysis.findRank(rank);
        if (summary == nullptr) continue;
        ++count;
        for (const facts::KernelStatistics& kernel : summary->kernels) {
            if (kernel.step != step) continue;
            sum.kernels += kernel.count;
            sum.blocks +=
                static_cast<double>(kernel.count) * static_cast<double>(std::max<int64_t>(0, kernel.key.gridBlocks));
        }
    }
    if (count > 0) sum = {sum.kernels / count, sum.blocks / count};
    return sum;
}

std::string stageList(const std::vector<size_t>& stages) {
    return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

void detectStageImbalance(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    if (analysis.facts.sharesDevices()) return;
    const job::PipelineTimes& times = analysis.pipelineTimes;
    if (times.empty() || times.ranks.size() < 2) return;
    const std::vector<double> slowness = slownessOf(analysis, times);
    const size_t stages = times.ranks.size();
    // Where devices differ, the ranks of a stage wait for its slow one: that is no work of the stage. Elsewhere they
    // wait for uneven work (experts), and it is.
    const bool someSlow = std::any_of(slowness.begin(), slowness.end(), [](double s) { return s > 1; });
    std::vector<std::vector<double>> works(stages);
    std::vector<double> costs;
    const double batches = std::max(1, times.shape->microBatches);
    for (const job::PipelineStep& step : times.steps) {
        double sum = 0, most = 0;
        for (size_t s = 0; s < stages; ++s) {
            const job::StageTimes& stage = step.stages[s];
            const double workNs = std::max(0.0, stage.workNs - (someSlow ? stage.insideWaitNs : 0)) / slowness[s];
            works[s].push_back(workNs / batches);
            sum += workNs;
            most = std::max(most, workNs);
        }
        costs.push_back(most - sum / static_cast<double>(stages));
    }
    std::vector<double> work;
    for (std::vector<double>& perStep : works) work.push_back(facts::median(perStep));
    const double mean = std::accumulate(work.begin(), work.end(), 0.0) / static_cast<double>(stages);
    const auto slowest = static_cast<size_t>(std::max_element(work.begin(), work.end()) - work.begin());
    const auto lightest = static_cast<size_t>(std::min_element(work.begin(), work.end()) - work.begin());
    const double excess = mean > 0 ? work[slowest] / mean - 1 : 0;
    if (excess < kExcess) return;

    std::vector<size_t> heavy;
    job::Finding finding;
    finding.id = "RS102";
    for (size_t s = 0; s < stages; ++s) {
        const bool isHeavy = work[s] / mean - 1 > excess / 2;
        if (isHeavy) heavy.push_back(s);
        std::vector<int>& into = isHeavy ? finding.ranks : finding.affectedRanks;
        into.insert(into.end(), times.ranks[s].begin(), times.ranks[s].end());
    }
    std::sort(finding.ranks.begin(), finding.ranks.end());
    std::sort(finding.affectedRanks.begin(), finding.affectedRanks.end());
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, times.ranks[slowest].front(), finding);
    finding.cause = fmt::format("{} of {} computes {:.2f}x the mean stage and sets the beat: the others wait for it",
                                stageList(heavy), stages, work[slowest] / mean);
    const double move = (work[slowest] - mean) * batches;
    finding.fix = {
        fmt::format("move about {} of work per step ({} per micro-batch, {} of the stage) from stage {} to stage {}",
                    text::durationText(move), text::durationText(work[slowest] - mean),
                    text::percentText(1 - mean / work[slowest]), slowest, lightest),
        "give that stage fewer layers: Megatron --num-layers-in-first-pipeline-stage / "
        "--num-layers-in-last-pipeline-stage, DeepSpeed partition_method, torch.distributed.pipelining split points; "
        "count embedding and output head as layers; where whole layers are too coarse for it, rankscope whatif NAME "
        "--change layers tells what they gain",
    };
    std::string perStage;
    for (size_t s = 0; s < stages; ++s)
        perStage += fmt::format("{}{}", s == 0 ? "" : ", ", text::durationText(work[s] * batches));
    const int step = times.steps.front().step;
    const Launches most = launchesOf(analysis, times.ranks[slowest], step),
                   least = launchesOf(analysis, times.ranks[lightest], step);
    finding.evidence.facts = {
        fmt::format("work per stage and step: {} (mean {})", perStage, text::durationText(mean * batches)),
    };
    // Mapped events tell of no launch: they have no blocks.
    if (most.blocks > 0 && least.blocks > 0)
        finding.evidence.facts.push_back(
            fmt::format("stage {} launches {:.0f} kernels with {:.0f} blocks a step, stage {} {:.0f} with {:.0f}",
                        slowest, most.kernels, most.blocks, lightest, least.kernels, least.blocks));
    finding.evidence.numbers = {{"stage", static_cast<double>(slowest)},
                                {"stages", static_cast<double>(stages)},
                                {"excess_over_mean", excess},
                                {"move_ns_per_step", move},
                                {"to_stage", static_cast<double>(lightest)}};
    if (finding.verdict == job::Verdict::found)
        claims.takeWaiting(analysis, "RS102", finding.ranks, costs, finding.affectedRanks);
    findings.push_back(std::move(finding));
}

std::string missingForStageImbalance(const job::Analysis& analysis) {
    const bool pipelined = std::any_of(analysis.layout.roles.begin(), analysis.layout.roles.end(),
                                       [](const auto& entry) { return entry.second == facts::CommRole::pipeline; });
    return pipelined ? withoutPeerRanks(analysis) : std::string();
}

/// The step after a change, ns; nothing where it cannot be made.
std::optional<double> stepAfter(const job::Analysis& analysis, const job::Change& change) {
    try {
        replay::TaskGraph graph = analysis.replay.graph;
        edits::EditEffect effect;
        edits::makeEdit(change)->apply(graph, analysis, effect);
        return analysis.replay.stepNs(graph, replay::simulate(graph));
    } catch (const edits::EditError&) {
        return std::nullopt;
    }
}

/// Where whole layers are too coarse, parts of them: an embedding or a head is moved, too, and of a few heavy layers
/// more than a finding's worth would stay behind.
Changes movedLayers(const job::Analysis& analysis, const job::Finding&) {
    const job::Change layers{"layers"}, layersAndParts{"layers", {{"parts", "yes"}}};
    const std::optional<double> whole = stepAfter(analysis, layers), parts = stepAfter(analysis, layersAndParts);
    const bool tooCoarse = !whole || (parts && *whole - *parts > PriceThresholds::kFloorShare * analysis.stepNs);
    return {tooCoarse ? layersAndParts : layers};
}

}  // namespace

const Diagnosis kStageImbalance{
    .id = "RS102",
    .title = "stage imbalance",
    .definition =
        "Work per pipeline stage differs, and the slowest stage sets the beat: compute, copies and the communication "
        "inside the stage, over all its tensor- and data-parallel ranks, without the optimizer. Slower devices are "
        "taken out by comparing same kernels with the other ranks. What it costs at most is what the slowest stage "
        "takes "
        "beyond the mean one, in every micro-batch.",
    .thresholds = {kExcess, kSlower},
    .falsePositives =
        "A model of few, large layers cannot be cut more evenly: then the last stage's head or the first one's "
        "embedding is what is left to split.",
    .fix = "Move layers' worth of work from the slowest stage to the lightest; the finding says how much.",
    .bySums = true,
    .hint =
        "The line that stays blue longest is the stage that sets the pace; amber on the others is their wait for it.",
    .detect = detectStageImbalance,
    .missing = missingForStageImbalance,
    .repair = movedLayers,
};

}  // namespace rs102
}  // namespace rankscope::diagnose
