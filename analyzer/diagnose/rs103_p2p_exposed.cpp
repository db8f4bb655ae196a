// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs103 {
namespace {

constexpr Threshold kShare{"share", 0.05, "of the step",
                           "sends of plain 1F1B are never quite hidden; below it the bubble matters more"};
constexpr Threshold kBoundaryShare{"boundary share", 0.10, "of the step",
                                   "the same where one boundary has it all: that one crosses nodes by design, and a "
                                   "pipeline may stand still for a tenth"};

struct Messages {
    std::set<int64_t> communicators;
    double bytes = 0;                                      // largest
    std::vector<std::pair<facts::CommTask, int>> longest;  // exposed, with rank
};

Messages messagesOf(const job::Analysis& analysis, const job::PipelineTimes& times, int step) {
    Messages messages;
    for (int rank : times.allRanks()) {
        const facts::RankSummary* summary = analysis.findRank(rank);
        if (summary == nullptr) continue;
        for (const facts::CommTask& task : analysis.tasks(*summary, step)) {
            if (analysis.layout.role(task) != facts::CommRole::pipeline) continue;
            messages.communicators.insert(task.communicatorId);
            messages.bytes = std::max(messages.bytes, static_cast<double>(task.bytes) / std::max(1, task.calls));
            messages.longest.emplace_back(task, rank);
        }
    }
    const size_t keep = std::min<size_t>(3, messages.longest.size());
    std::partial_sort(
        messages.longest.begin(), messages.longest.begin() + static_cast<std::ptrdiff_t>(keep), messages.longest.end(),
        [](const auto& a, const auto& b) { return a.first.exposedTransferNs > b.first.exposedTransferNs; });
    messages.longest.resize(keep);
    return messages;
}

bool crossesNodes(const job::Analysis& analysis, const job::PipelineTimes& times) {
    return std::any_of(
        analysis.layout.pipelines.begin(), analysis.layout.pipelines.end(), [&](const facts::Pipeline& pipeline) {
            return pipeline.stages.size() == times.ranks.size() && !analysis.facts.sameHost(pipeline.stages);
        });
}

Changes instantMessages(const job::Analysis& analysis, const job::Finding&) {
    std::vector<int> communicators;
    for (const auto& [id, role] : analysis.layout.roles)
        if (const facts::Communicator* group = analysis.facts.findCommunicator(id);
            role == facts::CommRole::pipeline && group != nullptr && !analysis.replay.hasLeftOut(group->ranks))
            communicators.push_back(static_cast<int>(id));
    if (communicators.empty()) return {};
    return {{"speed", {{"factor", "inf"}, {"communicator", job::listText(communicators)}}}};
}

void detectExposedP2p(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const job::PipelineTimes& times = analysis.pipelineTimes;
    if (times.empty() || times.shape->microBatches < 1) return;
    const Messages messages = messagesOf(analysis, times, times.steps.front().step);
    double explained = 0;
    for (int64_t communicator : messages.communicators)
        explained = std::max(explained, claims.explainedTransferNs(communicator, "RS103"));
    std::vector<double> exposed, most, costs;  // by step: of the mean stage, of the rank that has most
    for (const job::PipelineStep& step : times.steps) {
        double sum = 0, largest = 0;
        for (const job::StageTimes& stage : step.stages) {
            sum += stage.exposedTransferNs;
            largest = std::max(largest, stage.largestExposedTransferNs);
        }
        exposed.push_back(sum / static_cast<double>(step.stages.size()));
        most.push_back(largest);
        costs.push_back(std::max(0.0, exposed.back() - explained));
    }
    job::Finding finding;
    finding.id = "RS103";
    if (facts::median(most) - explained < PriceThresholds::kFloorShare * analysis.stepNs || facts::median(costs) <= 0)
        return;
    finding.ranks = times.allRanks();
    finding.affectedRanks = finding.ranks;
    if (messages.communicators.size() == 1) finding.communicator = *messages.communicators.begin();
    const bool nodes = crossesNodes(analysis, times);
    const bool oneBoundary = nodes && times.ranks.size() == 2;
    finding.leastShare = oneBoundary ? kBoundaryShare : kShare;
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, times.ranks.front().front(), finding);
    finding.cause = fmt::format(
        "messages of {} between stages take {} each (median), and keep a stage from computing for up to {} a step",
        messages.bytes > 0 ? text::bytesText(messages.bytes) : "unknown size", text::durationText(times.transferNs),
        text::durationText(facts::median(most)));
    finding.fix = {
        "overlap sends and receives with compute: Megatron --overlap-p2p-communication with interleaved stages "
        "(asynchronous p2p), DeepSpeed pipeline p2p on its own stream",
        "a larger micro-batch moves the same bytes in fewer messages; sequence parallelism or scatter-gather of "
        "activations over tensor-parallel ranks sends 1/T of them"};
    if (nodes)
        finding.fix.push_back(
            "keep neighbouring stages on one node, or cut the pipeline so that only one boundary crosses nodes");
    finding.evidence.facts = {
        fmt::format("exposed p2p transfer: {} of the step on the mean stage, {} on the rank that has most",
                    text::percentText(facts::median(exposed) / analysis.stepNs),
                    text::percentText(facts::median(most) / analysis.stepNs))};
    finding.evidence.numbers = {{"message_transfer_ns", times.transferNs},
                                {"message_bytes", messages.bytes},
                                {"exposed_transfer_ns_per_step", facts::median(exposed)}};
    for (const auto& [task, rank] : messages.longest)
        finding.evidence.rows.push_back({"kernel", task.kernelId, rank,
                                         fmt::format("{} exposed for {}", store::toText(task.op),
                                                     text::durationText(static_cast<double>(task.exposedTransferNs)))});
    if (finding.verdict != job::Verdict::inconclusive)
        for (int64_t communicator : messages.communicators) claims.takeTransfer("RS103", communicator, finding.costNs);
    findings.push_back(std::move(finding));
}

}  // namespace

const Diagnosis kExposedP2p{
    .id = "RS103",
    .title = "pipeline p2p exposed",
    .definition =
        "Sends and receives between stages take time in which compute stands still: the exposed transfer of the mean "
        "stage, without what a slow link explains. The saving is what the job gains when they take no time, by a "
        "replay. Waiting for a neighbour that is not ready is no transfer and does not count.",
    .thresholds = {kShare, kBoundaryShare},
    .falsePositives =
        "A link that is slower than its siblings (RS208) or than it should be (RS204) makes messages long: those "
        "findings keep that time.",
    .fix = "Overlap p2p with compute, use larger micro-batches, place neighbouring stages close together.",
    .hint =
        "Framed are messages between stages that take long themselves: red with no blue beside it, while both ends "
        "are there.",
    .detect = detectExposedP2p,
    .repair = instantMessages,
};

}  // namespace rs103
}  // namespace rankscope::diagnose
