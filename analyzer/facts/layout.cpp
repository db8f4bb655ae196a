// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>

#include "analyzer/facts/comm_usage.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::facts {
namespace {

/// Returns the most frequent value, the larger of two equally frequent ones; nothing from nothing.
std::optional<int> mostCommon(const std::map<int, int>& byRank) {
    std::map<int, int> counts;
    for (const auto& [rank, value] : byRank) ++counts[value];
    std::pair<int, int> most;  // count, value
    for (const auto& [value, count] : counts) most = std::max(most, {count, value});
    return counts.empty() ? std::nullopt : std::optional(most.second);
}

/// Returns the role of the operation that takes most time.
CommRole mainRole(const CommUsage& usage, const std::map<store::Op, CommUse>& uses) {
    std::map<CommRole, int64_t> time;
    for (const CommUseEvent& event : usage.events) {
        const auto use = uses.find(event.op);
        if (use != uses.end()) time[use->second.role] += event.durationNs;
    }
    const auto most = std::ranges::max_element(time, {}, [](const auto& role) { return role.second; });
    if (most != time.end()) return most->first;
    return uses.empty() ? CommRole::unknown : uses.begin()->second.role;
}

/// Holds the sizes of a rank's groups, by role.
using GroupSizes = std::map<CommRole, std::map<int, int>>;  // role, rank: ranks in the largest such group

/// Finds replicas: an all-reduce beside a sharded group that shares one rank with it sums shards between copies, which
/// is HSDP, not data parallel on its own.
void findReplicas(const TraceFacts& facts, Layout& layout) {
    std::set<int> sharding;  // ranks in a sharded group
    for (const auto& [id, role] : layout.roles)
        if (role == CommRole::shardedParameters)
            sharding.insert(facts.communicators.at(id).ranks.begin(), facts.communicators.at(id).ranks.end());
    for (auto& [id, role] : layout.roles) {
        if (role != CommRole::gradients) continue;
        const std::vector<int>& ranks = facts.communicators.at(id).ranks;
        const auto use = layout.uses[id].find(store::Op::allReduce);
        if (use == layout.uses[id].end() ||
            !std::ranges::all_of(ranks, [&](int rank) { return sharding.count(rank) != 0; }))
            continue;
        const bool crosses = std::ranges::all_of(layout.roles, [&](const auto& other) {
            if (other.second != CommRole::shardedParameters) return true;
            const std::vector<int>& inner = facts.communicators.at(other.first).ranks;
            return std::ranges::count_if(ranks, [&](int rank) { return text::contains(inner, rank); }) <= 1;
        });
        if (!crosses) continue;
        role = CommRole::replicas;
        use->second.role = CommRole::replicas;
    }
}

void sayZero(const std::map<int64_t, RoleEvidence>& evidence, Layout& layout) {
    double best = 0;
    for (const auto& [id, roles] : evidence) {
        const CommRole role = layout.role(id);
        if (!roles.zero || (role != CommRole::gradients && role != CommRole::shardedParameters)) continue;
        // One sharded group outweighs the plain all-reduces beside it (norms, experts).
        const double weight = roles.zeroConfidence + *roles.zero;
        if (weight <= best) continue;
        best = weight;
        layout.zero = roles.zero;
        layout.zeroOr = roles.zeroOr;
        layout.confidences["zero"] = roles.zeroConfidence;
    }
}

void sayDegrees(const TraceFacts& facts, const GroupSizes& groups, Layout& layout) {
    const auto common = [&](CommRole role) {
        return groups.count(role) != 0 ? mostCommon(groups.at(role)) : std::nullopt;
    };
    layout.tp = common(CommRole::activations);
    layout.shard = common(CommRole::shardedParameters);
    layout.replicate = common(CommRole::replicas);
    layout.dp = common(CommRole::gradients);
    if (layout.shard)
        layout.dp = static_cast<int>(std::min<int64_t>(int64_t{*layout.shard} * layout.replicate.value_or(1), INT_MAX));
    for (const auto& [id, ops] : layout.uses)
        for (const auto& [op, use] : ops)
            if (use.role == CommRole::experts && use.confidence > 0.5)
                layout.ep = std::max(layout.ep.value_or(1), facts.communicators.at(id).size);
    if (!layout.pipelines.empty()) {
        layout.pp = static_cast<int>(layout.pipelines.front().stages.size());
        layout.schedule = layout.pipelines.front().schedule;
        layout.confidences["schedule"] = layout.schedule == "unknown" ? 0 : layout.pipelines.front().confidence;
    }
}

/// Returns the world size as recorded; a trace of a few ranks may tell it only by its largest communicator.
int worldSize(const TraceFacts& facts) {
    int world = std::max(std::atoi(facts.text("world_size", "0").c_str()), static_cast<int>(facts.ranks.size()));
    for (const auto& [id, communicator] : facts.communicators) world = std::max(world, communicator.size);
    return world;
}

/// Sets a degree that nothing speaks for to 1 when the others explain every rank; data parallelism may also be the rest
/// of the world.
void completeDegrees(int world, Layout& layout) {
    const bool any = layout.dp || layout.tp || layout.pp || layout.ep;
    if (!any || world < 1) return;
    const int64_t model = int64_t{layout.tp.value_or(1)} * layout.pp.value_or(1);  // a damaged trace may name any size
    if (!layout.dp && (layout.tp || layout.pp) && model == world) layout.dp = 1;
    if (!layout.dp && layout.ep && *layout.ep * model == world)
        layout.dp = layout.ep;  // experts are spread over data-parallel ranks
    const bool whole = layout.dp.value_or(1) * model == world;
    layout.confidence = whole ? 0.9 : 0.4;
    for (const auto& [name, degree] :
         {std::pair{"dp", layout.dp}, {"tp", layout.tp}, {"pp", layout.pp}, {"ep", layout.ep}})
        if (degree) layout.confidences[name] = layout.confidence;
    if (!whole) return;
    for (std::optional<int>* degree : {&layout.dp, &layout.tp, &layout.pp}) *degree = degree->value_or(1);
    // All-to-alls that do not look like dispatch and combine leave it open.
    const bool exchanges = std::ranges::any_of(layout.uses, [](const auto& entry) {
        return std::ranges::any_of(entry.second, [](const auto& use) { return use.second.role == CommRole::experts; });
    });
    if (!exchanges) layout.ep = layout.ep.value_or(1);
}

/// Writes "0-3", "0,4", "0,8,...,504 (64 ranks)".
std::string rankListText(const std::vector<int>& ranks) {
    constexpr size_t kMostParts = 4;  // more do not fit a column of a table
    const std::vector<std::string> parts = text::rankRanges(ranks);
    if (parts.size() <= kMostParts) return fmt::format("{}", fmt::join(parts, ","));
    return fmt::format("{},{},...,{} ({} ranks)", parts[0], parts[1], parts.back(), ranks.size());
}

std::string nameOf(const Communicator& communicator, CommRole role) {
    constexpr std::string_view kRoles[] = {
        "",         "data parallel", "sharded data parallel", "tensor parallel", "expert parallel", "pipeline",
        "replicas", "control"};
    std::string name(kRoles[static_cast<size_t>(role)]);
    if (role == CommRole::unknown) name = communicator.name.empty() ? "group" : communicator.name;
    const size_t known = communicator.ranks.size();
    if (known == 0) return communicator.size > 0 ? fmt::format("{} of {} ranks", name, communicator.size) : name;
    name += " " + rankListText(communicator.ranks);
    const int others = communicator.size - static_cast<int>(known);
    return others > 0 ? fmt::format("{} and {} not recorded", name, text::countedText(others, "rank")) : name;
}

}  // namespace

std::string_view toText(CommRole role) {
    constexpr std::string_view kTexts[] = {"unknown", "gradients", "sharded_parameters", "activations",
                                           "experts", "pipeline",  "replicas",           "control"};
    return kTexts[static_cast<size_t>(role)];
}

int Pipeline::stageOf(int rank) const {
    const auto at = std::ranges::find(stages, rank);
    return at == stages.end() ? -1 : static_cast<int>(at - stages.begin());
}

int Layout::stageOf(int rank) const {
    const Pipeline* pipeline = pipelineOf(rank);
    return pipeline == nullptr ? -1 : pipeline->stageOf(rank);
}

std::vector<int> Layout::ranksOfStage(int stage) const {
    std::vector<int> ranks;
    for (const Pipeline& pipeline : pipelines)
        if (stage >= 0 && static_cast<size_t>(stage) < pipeline.stages.size())
            ranks.push_back(pipeline.stages[static_cast<size_t>(stage)]);
    std::ranges::sort(ranks);
    return ranks;
}

CommRole Layout::role(int64_t communicator, store::Op op) const {
    const auto at = uses.find(communicator);
    if (at == uses.end()) return CommRole::unknown;
    return text::valueAt(at->second, op).role;
}

CommRole Layout::role(int64_t communicator) const {
    return text::valueAt(roles, communicator);
}

const Pipeline* Layout::pipelineOf(int rank) const {
    for (const Pipeline& pipeline : pipelines)
        if (text::contains(pipeline.stages, rank)) return &pipeline;
    return nullptr;
}

Layout inferLayout(const TraceFacts& facts, std::span<const RankSummary> ranks) {
    // Roles are told by how often and how long; dumps of a flight recorder hold the last calls only, and the
    // framework's names of the groups.
    if (facts.end && facts.end->isRecorder) return {};
    Layout layout;
    const Exchanges exchanges = findExchanges(facts, ranks);
    layout.pipelines = exchanges.pipelines.empty() ? toldPipelines(facts) : exchanges.pipelines;
    const std::map<int64_t, CommUsage> usages = commUsages(facts, ranks);
    std::map<int64_t, RoleEvidence> evidence;
    bool sequenceParallel = false;
    for (const auto& [id, communicator] : facts.communicators) {
        if (communicator.size < 2) continue;
        const auto usage = usages.find(id);
        if (usage == usages.end()) {
            if (usages.empty()) continue;  // without compute, as of calls alone, no step tells what is used in it
            layout.uses[id][store::Op::unknown] = {CommRole::control, 0.6};  // used outside of the steps only
            layout.roles[id] = CommRole::control;
            continue;
        }
        RoleEvidence roles = rolesOf(usage->second);
        const auto sends = exchanges.roles.find(id);
        if (sends != exchanges.roles.end()) roles.uses[store::Op::send] = roles.uses[store::Op::recv] = sends->second;
        sequenceParallel |= roles.sequenceParallel;
        layout.uses[id] = roles.uses;
        layout.roles[id] = mainRole(usage->second, roles.uses);
        evidence[id] = std::move(roles);
    }
    findReplicas(facts, layout);
    GroupSizes groups;
    for (const auto& [id, ops] : layout.uses) {
        const Communicator& communicator = facts.communicators.at(id);
        std::set<CommRole> roles;
        for (const auto& [op, use] : ops) roles.insert(use.role);
        // Tensor-parallel groups also sum the gradients of what they all hold, such as norms: they are not data
        // parallel for that.
        if (roles.count(CommRole::activations) != 0) roles = {CommRole::activations};
        for (CommRole role : roles) {
            for (int rank : communicator.ranks) groups[role][rank] = std::max(groups[role][rank], communicator.size);
        }
    }
    sayZero(evidence, layout);
    sayDegrees(facts, groups, layout);
    if (sequenceParallel) layout.sp = layout.tp;
    completeDegrees(worldSize(facts), layout);
    return layout;
}

std::map<int64_t, std::string> communicatorNames(const TraceFacts& facts, const Layout& layout) {
    std::map<int64_t, std::string> names;
    std::map<std::string, int> uses;
    for (const auto& [id, communicator] : facts.communicators)
        ++uses[names[id] = nameOf(communicator, layout.role(id))];
    for (auto& [id, name] : names)
        if (uses[name] > 1) name += fmt::format(" (communicator {})", id);
    return names;
}

std::string communicatorName(const TraceFacts& facts, const Layout& layout, int64_t id) {
    const std::map<int64_t, std::string> names = communicatorNames(facts, layout);
    const auto known = names.find(id);
    return known == names.end() ? fmt::format("communicator {}", id) : known->second;
}

}  // namespace rankscope::facts
