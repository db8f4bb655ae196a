// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs207 {
namespace {

/// Ranks on the smallest node of the job: the largest tensor-parallel group that fits everywhere.
int ranksPerNode(const job::Analysis& analysis) {
    std::map<int64_t, int> count;
    for (const facts::RankFacts& rank : analysis.facts.ranks) ++count[rank.hostId];
    int least = 0;
    for (const auto& [host, ranks] : count) least = least == 0 ? ranks : std::min(least, ranks);
    return least;
}

/// The same message inside one node; nothing when its link is not known.
std::optional<double> insideNs(const job::Analysis& analysis, const facts::Communicator& communicator,
                               const facts::CommTask& task) {
    facts::Communicator inside = communicator;
    inside.nodes = 1;
    const std::optional<costs::LinkModel> link = costs::linkWithLatency(analysis.peaks, inside, task.op);
    if (!link || task.bytes <= 0) return std::nullopt;
    // NCCL would choose anew: the fastest of the choices it uses in this job, at the slow end of what each may cost.
    double best = collectiveNs(*link, task.op, communicator.size, static_cast<double>(task.bytes),
                               {store::Algorithm::ring, store::Protocol::simple})
                      .high;
    for (costs::AlgorithmChoice choice : costs::algorithmChoices(task.op))
        if (choice.protocol != store::Protocol::ll128)
            best = std::min(
                best, collectiveNs(*link, task.op, communicator.size, static_cast<double>(task.bytes), choice).high);
    return best;
}

/// Groups with another role that would leave the node when the tensor-parallel groups move in: what their transfer
/// would grow to is the price. `placesPerNode`: tensor-parallel groups that fit on a node, each with one member of such
/// a group: the network cards it can use there.
double priceNs(const job::Analysis& analysis, const CriticalStep& step, int placesPerNode) {
    double price = 0;
    for (const facts::CommTask& task : step.tasks) {
        const facts::CommRole role = roleOf(analysis, task);
        if (role != facts::CommRole::gradients && role != facts::CommRole::shardedParameters &&
            role != facts::CommRole::replicas)
            continue;
        const auto at = analysis.facts.communicators.find(task.communicatorId);
        if (at == analysis.facts.communicators.end() || at->second.nodes > 1 || !analysis.peaks.inter ||
            task.bytes <= 0)
            continue;
        if (at->second.size <= placesPerNode) continue;
        facts::Communicator spread = at->second;
        spread.smallestNode = std::max(1, placesPerNode);
        spread.nodes = (spread.size + spread.smallestNode - 1) / spread.smallestNode;
        const std::optional<costs::LinkModel> between = costs::linkModel(analysis.peaks, spread, task.op);
        if (!between) continue;
        const double then = collectiveNs(*between, task.op, spread.size, static_cast<double>(task.bytes),
                                         {store::Algorithm::ring, store::Protocol::simple})
                                .high;
        // What is exposed today grows; what hides may go on hiding.
        const double share = task.transferNs() > 0
                                 ? static_cast<double>(task.exposedTransferNs) / static_cast<double>(task.transferNs())
                                 : 0;
        price += share * std::max(0.0, then - static_cast<double>(task.transferNs()));
    }
    return price;
}

void detectTensorParallelSpan(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        if (where.role != facts::CommRole::activations || where.first->nodes < 2) continue;
        const std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        if (steps.empty()) continue;
        const int perNode = ranksPerNode(analysis);
        const int placesPerNode = perNode / where.first->size;
        std::vector<double> costs, exposed, calls, bytes;
        bool known = true;
        for (const CriticalStep& step : steps) {
            std::vector<double> times = transfersOf(step);
            double total = 0;
            for (size_t i : step.own) {
                const std::optional<double> inside = insideNs(analysis, *where.first, step.tasks[i]);
                known = known && (inside || step.tasks[i].bytes == 0);
                if (inside) times[i] = std::min(times[i], *inside);
                total += static_cast<double>(std::max<int64_t>(0, step.tasks[i].bytes));
            }
            costs.push_back(std::max(0.0, known ? savedAtMost(step, times) - priceNs(analysis, step, placesPerNode)
                                                : step.exposedTransferNs()));
            exposed.push_back(step.exposedTransferNs());
            calls.push_back(static_cast<double>(step.own.size()));
            bytes.push_back(total);
        }
        const bool reached = known && analysis.peaks.intra && analysis.peaks.intra->kind == costs::PeakKind::atLeast;
        // What the job reached inside a node says too little where it gains nothing: then the question stays open.
        const bool tooLittle = reached && facts::median(costs) < PriceThresholds::kFloorShare * analysis.stepNs;
        if (tooLittle) costs = exposed;
        if (facts::median(costs) <= 0) continue;
        job::Finding finding;
        finding.id = "RS207";
        finding.ranks = finding.affectedRanks = where.ranks;
        finding.communicator = where.first->id;
        if (!known || tooLittle)
            finding.whyInconclusive =
                fmt::format("the speed inside a node is {}: tell it: {}; at most {} a step is at stake",
                            known ? fmt::format("known to be {:.1f} GB/s at least, which gains too little",
                                                analysis.peaks.intra->bytesPerNs)
                                  : "not known",
                            costs::kTellLinks, text::durationText(facts::median(exposed)));
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        finding.cause = fmt::format(
            "tensor-parallel groups of {} ranks span {} nodes: {:.0f} collectives of {} a step wait for the network "
            "between them",
            where.first->size, where.first->nodes, facts::median(calls),
            text::bytesText(facts::median(bytes) / std::max(1.0, facts::median(calls))));
        finding.evidence.facts = {fmt::format("{} of their transfer is exposed a step: compute needs each result",
                                              text::durationText(facts::median(exposed))),
                                  fmt::format("ranks {} are on {} nodes; {} ranks fit on one",
                                              fmt::join(where.first->ranks, ", "), where.first->nodes, perNode)};
        if (reached)
            finding.evidence.facts.push_back(fmt::format("links inside a node carry {:.1f} GB/s at least ({})",
                                                         analysis.peaks.intra->bytesPerNs,
                                                         analysis.peaks.intra->source));
        finding.evidence.numbers = {{"exposed_transfer_ns_per_step", facts::median(exposed)},
                                    {"calls_per_step", facts::median(calls)},
                                    {"bytes_per_step", facts::median(bytes)}};
        for (size_t k = 0; k < std::min<size_t>(3, steps.front().own.size()); ++k)
            if (const facts::CommTask& task = steps.front().tasks[steps.front().own[k]]; task.collectiveId != 0)
                finding.evidence.rows.push_back(
                    {"collective", task.collectiveId, steps.front().rank->rank, "compute waits for it across nodes"});
        if (where.first->size <= perNode)
            finding.fix = {fmt::format(
                "order ranks so that tensor-parallel groups are neighbours on one node (Megatron --tp-comm first in "
                "the order \"tp-cp-ep-dp-pp\"; init_device_mesh(\"cuda\", (dp, tp)) with tp={} last)",
                where.first->size)};
        else
            finding.fix = {fmt::format(
                "tensor-parallel degree {} at most (ranks per node), the rest as pipeline or data parallelism",
                perNode)};
        if (finding.verdict == job::Verdict::found)
            for (int64_t id : where.ids) claims.takeTransfer("RS207", id, finding.costNs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForTensorParallelSpan(const job::Analysis& analysis) {
    const std::string hosts = withoutHosts(analysis);
    const bool tensorParallel =
        std::any_of(analysis.layout.roles.begin(), analysis.layout.roles.end(),
                    [](const auto& entry) { return entry.second == facts::CommRole::activations; });
    if (!tensorParallel) return {};
    return hosts.empty() ? std::string() : hosts;
}

Changes placedInside(const job::Analysis&, const job::Finding& f) {
    return f.communicator ? Changes{{"place", {{"communicator", std::to_string(*f.communicator)}}}} : Changes();
}

}  // namespace

const Diagnosis kTensorParallelSpan{
    .id = "RS207",
    .title = "tensor parallelism across nodes",
    .definition =
        "A communicator with the tensor-parallel pattern (collectives of activations that compute waits for) spans "
        "nodes. The cost is what the step gains when its messages run at the speed inside a node, less what the "
        "data-parallel groups lose that move out in exchange.",
    .falsePositives =
        "Nodes joined by NVLink (NVL72) count as several here when their hosts differ: tell it with --links, intra and "
        "inter equal. Where nobody told the peak, the best that the job reached inside nodes stands for it; where that "
        "gains too little the verdict is 'inconclusive'.",
    .fix =
        "Order ranks so that tensor-parallel groups are neighbours on a node, or lower the degree to the ranks of a "
        "node.",
    .cureAt = CureAt::machine,
    .hint =
        "Framed are the many collectives of layers that wait for the network between hosts: the blue of each layer is "
        "cut apart by red.",
    .detect = detectTensorParallelSpan,
    .missing = missingForTensorParallelSpan,
    .repair = placedInside,
};

}  // namespace rs207
}  // namespace rankscope::diagnose
