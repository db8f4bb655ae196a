// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/report/memory.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using facts::CommRole;
using store::Op;

/// Of one communicator, a step.
struct Moved {
    int ranks = 0;
    double busBytes = 0;
    double reduced = 0;                         // bytes reduced to shards
    double reducedWhole = 0;                    // bytes of all-reduces
    double elements = 0;                        // of what is reduced
    int gradientBytes = 0, parameterBytes = 0;  // an element; 0: unknown
};

double stepsOf(const job::Analysis& analysis) {
    return analysis.facts.wholeRunIsOneStep ? 1 : static_cast<double>(std::max<size_t>(1, analysis.steps.size()));
}

bool isAnalysed(const job::Analysis& analysis, const std::optional<int32_t>& step) {
    return analysis.facts.wholeRunIsOneStep || (step && std::ranges::binary_search(analysis.steps, *step));
}

std::map<int64_t, Moved> movedBy(const job::Analysis& analysis, const std::vector<CommRole>& roles) {
    std::map<int64_t, Moved> moved;
    const double steps = stepsOf(analysis);
    for (const store::Collective& c : analysis.facts.collectives) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(c.communicatorId);
        const std::optional<int32_t> step = c.step ? std::optional<int32_t>(*c.step) : std::nullopt;
        if (!communicator || communicator->size < 2 || !c.bytes || !isAnalysed(analysis, step) ||
            std::ranges::find(roles, analysis.layout.role(c.communicatorId, c.op)) == roles.end())
            continue;
        Moved& of = moved[c.communicatorId];
        const double bytes = static_cast<double>(*c.bytes) / steps;
        of.ranks = communicator->size;
        of.busBytes += bytes * facts::busFactor(c.op, communicator->size);
        const int element = store::elementBytes(c.dataType);
        if (c.op == Op::allGather) of.parameterBytes = std::max(of.parameterBytes, element);
        if (c.op != Op::reduceScatter && c.op != Op::allReduce) continue;
        (c.op == Op::reduceScatter ? of.reduced : of.reducedWhole) += bytes;
        of.gradientBytes = std::max(of.gradientBytes, element);
        if (element > 0) of.elements += bytes / element;
    }
    return moved;
}

/// The mean of communicators that play one part; nothing where there is none.
std::optional<Moved> meanOf(const std::map<int64_t, Moved>& all) {
    if (all.empty()) return std::nullopt;
    Moved mean;
    const auto count = static_cast<double>(all.size());
    for (const auto& [id, of] : all) {
        mean.ranks = std::max(mean.ranks, of.ranks);
        mean.busBytes += of.busBytes / count;
        mean.reduced += of.reduced / count;
        mean.reducedWhole += of.reducedWhole / count;
        mean.elements += of.elements / count;
        mean.gradientBytes = std::max(mean.gradientBytes, of.gradientBytes);
        mean.parameterBytes = std::max(mean.parameterBytes, of.parameterBytes);
    }
    return mean;
}

double ringShare(int ranks) {
    return static_cast<double>(ranks - 1) / ranks;
}

/// What `gatherings` of the parameters and one reduction of the gradients take.
double shardedBytes(const Moved& moved, int gatherings) {
    const bool known = moved.parameterBytes > 0 && moved.gradientBytes > 0;
    const double parameters =
        moved.reduced * (known ? static_cast<double>(moved.parameterBytes) / moved.gradientBytes : 1);
    return (moved.reduced + gatherings * parameters) * ringShare(moved.ranks);
}

void addDataParallel(const job::Analysis& analysis, std::vector<VolumeRow>& rows) {
    const facts::Layout& layout = analysis.layout;
    const std::optional<Moved> moved = meanOf(movedBy(analysis, {CommRole::gradients, CommRole::shardedParameters}));
    if (!moved) return;
    const std::optional<Moved> replicas = meanOf(movedBy(analysis, {CommRole::replicas}));
    VolumeRow row;
    row.strategy = replicas      ? "HSDP"
                   : layout.zero ? (*layout.zero == 0 ? "data parallel" : fmt::format("ZeRO-{}", *layout.zero))
                                 : "data parallel";
    row.busBytes = moved->busBytes + (replicas ? replicas->busBytes : 0);
    const double gradients = moved->reduced + moved->reducedWhole;
    if (gradients > 0) row.gradientBytes = gradients;
    if (moved->elements > 0 && layout.zero && !layout.zeroOr && !replicas)
        row.adamStateBytes = adamStateBytes(*layout.zero, moved->elements, moved->gradientBytes, moved->ranks);
    if (!layout.zero) {
        row.open = "which part of the states is sharded is unknown";
    } else if (*layout.zero == 0 || moved->reduced <= 0) {
        row.formula = "2 N (n-1)/n";
        row.open = "N is told by these operations themselves";
    } else if (replicas) {
        row.formula = "3 N (s-1)/s + 2 N/s (r-1)/r";
        row.expectedBytes = shardedBytes(*moved, 2) + 2 * moved->reduced / moved->ranks * ringShare(replicas->ranks);
    } else {
        row.formula = *layout.zero == 3 ? "3 N (n-1)/n" : "2 N (n-1)/n";
        row.expectedBytes = shardedBytes(*moved, *layout.zero == 3 ? 2 : 1);
    }
    rows.push_back(std::move(row));
}

void addOfModel(const job::Analysis& analysis, CommRole role, const char* strategy, std::vector<VolumeRow>& rows) {
    const std::optional<Moved> moved = meanOf(movedBy(analysis, {role}));
    if (!moved) return;
    VolumeRow row;
    row.strategy = strategy;
    row.busBytes = moved->busBytes;
    row.open = "that is told by the model's layers and activations, which are not recorded";
    rows.push_back(std::move(row));
}

void addPipelines(const job::Analysis& analysis, std::vector<VolumeRow>& rows) {
    const facts::Pipeline* pipeline = toldPipeline(analysis.layout);
    if (analysis.layout.pipelines.empty()) return;
    std::vector<double> sizes;
    double bytes = 0;
    size_t ranks = 0;
    for (const facts::Pipeline& chain : analysis.layout.pipelines) ranks += chain.stages.size();
    for (const store::P2p& message : analysis.facts.pointToPoint) {
        const facts::Pipeline* of = analysis.layout.pipelineOf(message.srcRank);
        const facts::RankFacts* from = analysis.facts.findRank(message.srcRank);
        if (!of || !from || of->stageOf(message.dstRank) < 0 || !message.bytes || !message.sendArrivalNs) continue;
        const facts::StepWindow* step = facts::stepAt(from->steps, *message.sendArrivalNs);
        if (!isAnalysed(analysis, step ? std::optional<int32_t>(step->step) : std::nullopt)) continue;
        bytes += static_cast<double>(*message.bytes);
        sizes.push_back(static_cast<double>(*message.bytes));
    }
    if (sizes.empty() || ranks == 0) return;
    VolumeRow row;
    row.strategy = "pipeline";
    row.busBytes = bytes / stepsOf(analysis) / static_cast<double>(ranks);
    if (pipeline) {
        row.formula = "2 M (P V - 1) activations";
        const double messages =
            2.0 * pipeline->microBatches * (static_cast<double>(pipeline->stages.size()) * pipeline->virtualStages - 1);
        row.expectedBytes = messages * facts::median(std::move(sizes)) / static_cast<double>(pipeline->stages.size());
    } else {
        row.open = "how many micro-batches a step has is unknown";
    }
    rows.push_back(std::move(row));
}

}  // namespace

std::vector<VolumeRow> volumesOf(const job::Analysis& analysis) {
    std::vector<VolumeRow> rows;
    addDataParallel(analysis, rows);
    addOfModel(analysis, CommRole::activations, "tensor parallel", rows);
    addPipelines(analysis, rows);
    addOfModel(analysis, CommRole::experts, "expert parallel", rows);
    return rows;
}

std::string volumeText(const VolumeRow& row) {
    std::string text = fmt::format("{} moves {} of each rank and step", row.strategy, text::bytesText(row.busBytes));
    if (row.expectedBytes && *row.expectedBytes > 0)
        text += fmt::format(", {:.2f}x the {} that it has to", row.busBytes / *row.expectedBytes, row.formula);
    else if (!row.formula.empty())
        text += fmt::format(", the {} of its kind", row.formula);
    else
        text += "; what it has to is unknown: " + row.open;
    if (row.gradientBytes) text += fmt::format("; N, the gradients, {}", text::bytesText(*row.gradientBytes));
    return text;
}

std::string statesText(const std::vector<VolumeRow>& volumes, const std::vector<MemoryRow>& memory) {
    std::optional<int64_t> peak;
    for (const MemoryRow& row : memory)
        if (const auto of = peakOf(row)) peak = std::max(peak.value_or(0), *of);
    for (const VolumeRow& row : volumes)
        if (row.adamStateBytes && peak && *row.adamStateBytes <= static_cast<double>(*peak))
            return fmt::format(
                "of the largest peak, {}, parameters, gradients and Adam's states are {} ({}, each "
                "gradient summed once a step); the rest is activations and buffers",
                text::bytesText(static_cast<double>(*peak)), text::bytesText(*row.adamStateBytes), row.strategy);
    return {};
}

std::optional<double> adamStateBytes(int zeroStage, double parameters, int bytesPerParameter, int ranks) {
    if ((bytesPerParameter != 2 && bytesPerParameter != 4) || ranks < 1 || zeroStage < 0 || zeroStage > 3)
        return std::nullopt;
    const double weights = bytesPerParameter, gradients = bytesPerParameter, states = bytesPerParameter == 2 ? 12 : 8;
    const auto shareFrom = [&](int stage) { return zeroStage >= stage ? 1.0 / ranks : 1.0; };
    return parameters * (weights * shareFrom(3) + gradients * shareFrom(2) + states * shareFrom(1));
}

}  // namespace rankscope::report
