// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzer/diagnose/micro_steps.h"
#include "analyzer/facts/operation.h"
#include "analyzer/report/memory.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using facts::CommRole;
using store::Op;

constexpr const char* kNoSizes = "the sizes of some of its operations are not recorded";
constexpr double kAsTold = 0.1;  // what was broadcast holds buffers, too: so much below it is still the same
/// How far from an even number gatherings a reduction may be and still be those of whole micro-steps: the layers that
/// backward begins with stay whole after forward and are gathered once (of ten layers one: 0.1 a micro-step).
constexpr double kNearWhole = 0.25;

/// Of one communicator, a step; sizes on paper, before any factor of the bus.
struct Moved {
    double ranks = 0;     // of the communicator
    double recorded = 0;  // of them
    double busBytes = 0;
    double reduced = 0;          // bytes reduced to shards
    double reducedWhole = 0;     // bytes of all-reduces
    double reducedElements = 0;  // of both
    double gathered = 0, gatheredElements = 0;
    double broadcast = 0;  // before the first step, of the whole run
    bool sizesKnown = true, typesKnown = true;

    double ringShare() const { return (ranks - 1) / ranks; }
    double gradients() const { return reduced + reducedWhole; }
    /// All parameters as they are gathered: as many elements as are reduced.
    double parameters() const { return gatheredElements > 0 ? reducedElements * gathered / gatheredElements : 0; }
};

double stepsOf(const job::Analysis& analysis) {
    return analysis.facts.wholeRunIsOneStep ? 1 : static_cast<double>(std::max<size_t>(1, analysis.steps.size()));
}

bool isAnalysed(const job::Analysis& analysis, const std::optional<int32_t>& step) {
    return analysis.facts.wholeRunIsOneStep || (step && std::ranges::binary_search(analysis.steps, *step));
}

void count(const store::Collective& c, double steps, Moved& of) {
    if (!c.bytes) {
        of.sizesKnown = false;
        return;
    }
    const double bytes = static_cast<double>(*c.bytes) / steps;
    of.busBytes += bytes * facts::busFactor(c.op, static_cast<int>(of.ranks));
    const int element = store::elementBytes(c.dataType);
    if (c.op == Op::allGather) {
        of.gathered += bytes;
        of.typesKnown = of.typesKnown && element > 0;
        if (element > 0) of.gatheredElements += bytes / element;
    }
    if (c.op != Op::reduceScatter && c.op != Op::allReduce) return;
    (c.op == Op::reduceScatter ? of.reduced : of.reducedWhole) += bytes;
    of.typesKnown = of.typesKnown && element > 0;
    if (element > 0) of.reducedElements += bytes / element;
}

std::map<int64_t, Moved> movedBy(const job::Analysis& analysis, const std::vector<CommRole>& roles) {
    std::map<int64_t, Moved> moved;
    for (const store::Collective& c : analysis.facts.collectives) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(c.communicatorId);
        const std::optional<int32_t> step = c.step ? std::optional<int32_t>(*c.step) : std::nullopt;
        if (!communicator || communicator->size < 2 || !isAnalysed(analysis, step) ||
            std::ranges::find(roles, analysis.layout.role(c.communicatorId, c.op)) == roles.end())
            continue;
        Moved& of = moved[c.communicatorId];
        of.ranks = communicator->size;
        of.recorded = static_cast<double>(communicator->ranks.size());
        count(c, stepsOf(analysis), of);
    }
    return moved;
}

/// What is summed over the communicators of a rank, as the mean of the ranks that have one.
template <typename Value>
double perRank(const job::Analysis& analysis, const std::map<int64_t, Moved>& moved, const Value& value) {
    std::set<int> ranks;
    double sum = 0;
    for (const auto& [id, of] : moved) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(id);
        ranks.insert(communicator->ranks.begin(), communicator->ranks.end());
        sum += of.recorded * value(of);
    }
    return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

bool all(const std::map<int64_t, Moved>& moved, bool Moved::*what) {
    return std::ranges::all_of(moved, [what](const auto& entry) { return entry.second.*what; });
}

/// What was broadcast among these ranks before the first step: DDP's and DeepSpeed's parameters and buffers, of which
/// all copies begin alike.
void addBroadcasts(const job::Analysis& analysis, std::map<int64_t, Moved>& moved) {
    std::optional<int64_t> firstNs;
    for (const facts::RankFacts& rank : analysis.facts.ranks)
        if (!rank.steps.empty()) firstNs = std::min(firstNs.value_or(INT64_MAX), rank.steps.front().startNs);
    for (const store::Collective& c : analysis.facts.collectives)
        if (const auto of = moved.find(c.communicatorId); of != moved.end() && c.op == Op::broadcast && !c.step &&
                                                          c.bytes && c.endNs && firstNs && *c.endNs <= *firstNs)
            of->second.broadcast += static_cast<double>(*c.bytes);
}

/// How often the gradients of a step are reduced where one pass would do: once a micro-step. 1: not seen to repeat.
size_t reductionsOfEach(const job::Analysis& analysis, const std::map<int64_t, Moved>& moved) {
    std::set<int64_t> ids;
    for (const auto& [id, of] : moved) ids.insert(id);
    std::map<size_t, size_t> seen;
    const std::vector<diagnose::CriticalStep> steps = diagnose::criticalSteps(analysis, ids);
    for (const diagnose::CriticalStep& step : steps) ++seen[diagnose::findRepeats(step).microSteps];
    for (const auto& [microSteps, count] : seen)
        if (count * 2 > steps.size()) return microSteps;
    return 1;
}

std::string strategyName(const facts::Layout& layout) {
    if (layout.replicate && *layout.replicate > 1) return "HSDP";
    return layout.zero && *layout.zero > 0 ? fmt::format("ZeRO-{}", *layout.zero) : "data parallel";
}

void expect(VolumeRow& row, const char* formula, double bytes) {
    row.formula = formula;
    row.expectedBytes = bytes;
}

/// Of all-reduces alone nothing is expected by themselves: a model half as large would move half as much.
void expectWhole(const job::Analysis& analysis, std::map<int64_t, Moved> groups, VolumeRow& row) {
    addBroadcasts(analysis, groups);
    const double told = perRank(analysis, groups, [](const Moved& of) { return of.broadcast; });
    const double onBus = perRank(analysis, groups, [](const Moved& of) { return of.gradients() * of.ringShare(); });
    const double expected = 2 * told * onBus / *row.gradientBytes;
    if (told <= 0) {
        row.open = "nothing told the size of the model";
    } else if (*row.busBytes < expected * (1 - kAsTold)) {
        row.open = fmt::format("{} were broadcast before the first step, more than gradients are reduced",
                               text::bytesText(told));
    } else {
        expect(row, "2 N (n-1)/n", expected);
        row.toldBytes = told;
    }
}

void expectSharded(const job::Analysis& analysis, int zero, const std::map<int64_t, Moved>& shards,
                   const std::map<int64_t, Moved>& replicas, VolumeRow& row) {
    const double parameters = perRank(analysis, shards, [](const Moved& of) { return of.parameters(); });
    if (!all(shards, &Moved::typesKnown)) {
        row.open = "the types of what is moved are not recorded";
        return;
    }
    if (parameters <= 0) {
        row.open = "parameters are not handed out by all-gathers";
        return;
    }
    // Stages 1 and 2 gather once what stage 3 gathers for each pass.
    const bool twice = zero == 3;
    const double gatherings = twice ? 2 : 1;
    const double among = perRank(analysis, shards, [&](const Moved& of) {
        return (of.gradients() + gatherings * of.parameters()) * of.ringShare();
    });
    const double copies = replicas.empty() ? 0 : replicas.begin()->second.ringShare();
    // Each shard of the gradients, N/s, is all-reduced among the copies.
    const double between =
        perRank(analysis, shards, [&](const Moved& of) { return 2 * of.gradients() / of.ranks * copies; });
    const char* formula = replicas.empty() ? (twice ? "3 N (n-1)/n" : "2 N (n-1)/n")
                          : twice          ? "3 N (s-1)/s + 2 N/s (r-1)/r"
                                           : "2 N (s-1)/s + 2 N/s (r-1)/r";
    expect(row, formula, among + between);
    row.gatherings = perRank(analysis, shards, [](const Moved& of) { return of.gathered; }) / parameters;
}

void addDataParallel(const job::Analysis& analysis, std::vector<VolumeRow>& rows) {
    const facts::Layout& layout = analysis.layout;
    const std::map<int64_t, Moved> shards = movedBy(analysis, {CommRole::gradients, CommRole::shardedParameters});
    if (shards.empty()) return;
    const std::map<int64_t, Moved> replicas = movedBy(analysis, {CommRole::replicas});
    VolumeRow& row = rows.emplace_back();
    row.strategy = strategyName(layout);
    if (!all(shards, &Moved::sizesKnown) || !all(replicas, &Moved::sizesKnown)) {
        row.open = kNoSizes;
        return;
    }
    const auto onBus = [](const Moved& of) { return of.busBytes; };
    row.busBytes = perRank(analysis, shards, onBus) + perRank(analysis, replicas, onBus);
    const double gradients = perRank(analysis, shards, [](const Moved& of) { return of.gradients(); });
    if (!layout.zero || gradients <= 0) {
        row.open = "which part of the states is sharded is not known";
        return;
    }
    row.gradientBytes = gradients;
    const size_t repeats = reductionsOfEach(analysis, shards);
    if (repeats > 1) row.reductions = static_cast<int>(repeats);
    if (*layout.zero == 0)
        expectWhole(analysis, shards, row);
    else
        expectSharded(analysis, *layout.zero, shards, replicas, row);
    const double elements = perRank(analysis, shards, [](const Moved& of) { return of.reducedElements; });
    // A stage that is not sure, copies of shards, and several sizes of groups each have a formula of their own.
    if (layout.zeroOr || !replicas.empty() || !all(shards, &Moved::typesKnown) || elements <= 0) return;
    const double ranks = shards.begin()->second.ranks;
    if (std::ranges::any_of(shards, [ranks](const auto& entry) { return entry.second.ranks != ranks; })) return;
    row.adamStateBytes = adamStateBytes(*layout.zero, elements / static_cast<double>(repeats),
                                        static_cast<int>(std::lround(gradients / elements)), static_cast<int>(ranks));
}

void addOfModel(const job::Analysis& analysis, CommRole role, const char* strategy, std::vector<VolumeRow>& rows) {
    const auto moved = movedBy(analysis, {role});
    if (moved.empty()) return;
    VolumeRow row;
    row.strategy = strategy;
    row.open = "layers and activations of the model are not known";
    if (all(moved, &Moved::sizesKnown))
        row.busBytes = perRank(analysis, moved, [](const Moved& of) { return of.busBytes; });
    else
        row.open = kNoSizes;
    rows.push_back(std::move(row));
}

void addPipelines(const job::Analysis& analysis, std::vector<VolumeRow>& rows) {
    double bytes = 0;
    size_t messages = 0, ranks = 0;
    bool known = true;
    // Of ranks that left no events the messages are not known: they have no part in the mean.
    const auto isRecorded = [&](int rank) {
        const facts::RankFacts* of = analysis.facts.findRank(rank);
        return of && of->recorded;
    };
    for (const facts::Pipeline& chain : analysis.layout.pipelines)
        ranks += static_cast<size_t>(std::ranges::count_if(chain.stages, isRecorded));
    const facts::Pipeline* of = nullptr;
    const facts::RankFacts* from = nullptr;
    for (const store::P2p& message : analysis.facts.pointToPoint) {  // mostly by sender
        if (from == nullptr || from->rank != message.srcRank) {
            of = analysis.layout.pipelineOf(message.srcRank);
            from = analysis.facts.findRank(message.srcRank);
        }
        if (!of || !from || of->stageOf(message.dstRank) < 0 || !message.sendArrivalNs) continue;
        const facts::StepWindow* step = facts::stepAt(from->steps, *message.sendArrivalNs);
        if (!isAnalysed(analysis, step ? std::optional<int32_t>(step->step) : std::nullopt)) continue;
        known = known && message.bytes;
        bytes += static_cast<double>(message.bytes.value_or(0));
        ++messages;
    }
    if (messages == 0 || ranks == 0) return;
    VolumeRow row;
    row.strategy = "pipeline";
    row.open = "the micro-batches of a step are counted by these very messages";
    if (known)
        row.busBytes = bytes / stepsOf(analysis) / static_cast<double>(ranks);
    else
        row.open = kNoSizes;
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
    if (!row.busBytes) return fmt::format("{}: what it moves is not known, {}", row.strategy, row.open);
    std::string text = fmt::format("{} moves {} a rank and step", row.strategy, text::bytesText(*row.busBytes));
    if (row.expectedBytes && *row.expectedBytes > 0)
        text += fmt::format(", {:.2f}x the {} of one pass", *row.busBytes / *row.expectedBytes, row.formula);
    else
        text += "; what it has to move is not known: " + row.open;
    if (row.toldBytes)
        text += fmt::format("; N is what was broadcast before the first step, {}", text::bytesText(*row.toldBytes));
    else if (row.gradientBytes)
        text += fmt::format("; {} of gradients are reduced{}", text::bytesText(*row.gradientBytes),
                            row.expectedBytes ? ": N" : "");
    if (row.reductions) text += fmt::format(", those of {} micro-steps one by one", *row.reductions);
    if (!row.gatherings) return text;
    const double passes = *row.gatherings / 2;
    if (std::round(passes) >= 2 && std::abs(*row.gatherings - 2 * std::round(passes)) <= kNearWhole)
        text += fmt::format(
            "; parameters are gathered {:.1f} times as often as gradients are reduced, as in {:.0f} "
            "micro-steps of which the last reduces",
            *row.gatherings, std::round(passes));
    return text;
}

std::string statesText(const std::vector<VolumeRow>& volumes, const std::vector<MemoryRow>& memory) {
    std::optional<int64_t> peak;
    for (const MemoryRow& row : memory)
        if (const auto of = peakOf(row)) peak = std::max(peak.value_or(0), *of);
    for (const VolumeRow& row : volumes)
        if (row.adamStateBytes && peak && *row.adamStateBytes <= static_cast<double>(*peak))
            return fmt::format(
                "of the largest peak, {}, parameters, gradients and states take {} where the optimizer is Adam with "
                "states of 4 bytes ({}); the rest is activations and buffers",
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
