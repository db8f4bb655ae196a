// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs205 {
namespace {

constexpr Threshold kForcedRatio{"forced", 1.1, "x the better choice",
                                 "NCCL_ALGO or NCCL_PROTO is set: nobody weighed the sizes"};
constexpr Threshold kChosenRatio{
    "chosen", 1.5, "x the better choice",
    "NCCL chose by itself and knows the hardware better than these formulas unless they differ grossly"};

std::optional<costs::LinkModel> linkOf(const job::Analysis& analysis, const facts::CommTask& task) {
    const facts::Communicator& communicator = analysis.facts.communicators.at(task.communicatorId);
    costs::Message message;
    message.shape = costs::shapeOf(communicator);
    message.smallestNode = communicator.smallestNode;
    message.op = task.op;
    message.present = {task.algorithm, task.protocol};
    return analysis.cost.linkOf(message);
}

/// What a message would take with its best choice, scaled by how far the link is from its model anyway.
struct Verdict205 {
    costs::AlgorithmChoice best;
    double bestNs = 0;       // as the measured time scales
    double explainedNs = 0;  // part of the measured time that the formulas give for the present choice
};

std::optional<Verdict205> judge(const job::Analysis& analysis, const facts::CommTask& task,
                                const std::set<store::Protocol>& seen) {
    if (task.bytes <= 0 || task.calls != 1 || !costs::isModelled(task.op, {task.algorithm, task.protocol}) ||
        task.transferNs() <= 0)
        return std::nullopt;
    std::optional<costs::LinkModel> link = linkOf(analysis, task);
    if (!link) return std::nullopt;
    const int ranks = analysis.facts.communicators.at(task.communicatorId).size;
    const auto bytes = static_cast<double>(task.bytes);
    const costs::AlgorithmChoice present{task.algorithm, task.protocol};
    link = costs::seenLink(*link, task.op, ranks, bytes, present, static_cast<double>(task.transferNs()));
    Verdict205 verdict{present, 0,
                       explainedNs(*link, task.op, ranks, bytes, present, static_cast<double>(task.transferNs()))};
    verdict.bestNs = verdict.explainedNs;
    for (costs::AlgorithmChoice choice : costs::algorithmChoices(task.op)) {
        // LL128 corrupts data where the hardware does not keep 128-byte stores whole: proposed only where NCCL uses it
        // itself.
        if (choice == present || (choice.protocol == store::Protocol::ll128 && seen.count(choice.protocol) == 0))
            continue;
        const double time = costs::collectiveNs(*link, task.op, ranks, bytes, choice).high;
        if (time >= verdict.bestNs) continue;
        verdict.best = choice;
        verdict.bestNs = time;
    }
    // A slow link slows every choice; what is faster than the formulas have it tells nothing of another choice.
    verdict.bestNs *= std::max(1.0, static_cast<double>(task.transferNs()) / verdict.explainedNs);
    return verdict;
}

/// Messages of one operation that ran with one choice.
struct Group {
    double presentNs = 0;
    double bestNs = 0;
    double bytes = 0;
    int messages = 0;
    std::map<std::pair<store::Algorithm, store::Protocol>, double> gains;  // by proposed choice
    std::map<std::pair<store::Algorithm, store::Protocol>, std::pair<int64_t, int64_t>> sizes;
};
struct GroupKey {
    store::Op op;
    costs::AlgorithmChoice present;
    int ranks, nodes;  // of the communicator
    auto tie() const { return std::tuple(op, present.algorithm, present.protocol, ranks, nodes); }
    bool operator<(const GroupKey& other) const { return tie() < other.tie(); }
};

GroupKey keyOf(const job::Analysis& analysis, const facts::CommTask& task) {
    const facts::Communicator& communicator = analysis.facts.communicators.at(task.communicatorId);
    return {task.op, {task.algorithm, task.protocol}, communicator.size, communicator.nodes};
}

std::set<store::Protocol> protocolsSeen(const job::Analysis& analysis) {
    std::set<store::Protocol> seen;
    for (const store::Collective& collective : analysis.facts.collectives) seen.insert(collective.protocol);
    return seen;
}

std::map<GroupKey, Group> groupsOf(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                                   const std::set<store::Protocol>& seen) {
    std::map<GroupKey, Group> groups;
    for (const CriticalStep& step : steps) {
        for (size_t i : step.own) {
            const facts::CommTask& task = step.tasks[i];
            const auto verdict = judge(analysis, task, seen);
            if (!verdict) continue;
            Group& group = groups[keyOf(analysis, task)];
            const double gain = static_cast<double>(task.transferNs()) - verdict->bestNs;
            group.presentNs += static_cast<double>(task.transferNs());
            group.bestNs += verdict->bestNs;
            group.bytes += static_cast<double>(task.bytes);
            ++group.messages;
            if (gain <= 0) continue;
            const auto choice = std::pair(verdict->best.algorithm, verdict->best.protocol);
            group.gains[choice] += gain;
            auto& range = group.sizes.try_emplace(choice, task.bytes, task.bytes).first->second;
            range.first = std::min(range.first, task.bytes);
            range.second = std::max(range.second, task.bytes);
        }
    }
    return groups;
}

bool forced(const job::Analysis& analysis, const char* variable) {
    return !analysis.facts.text(std::string("env.") + variable).empty();
}

/// How much longer the step's other messages of this operation would take with the proposed setting, ns per step.
double harm(const job::Analysis& analysis, const std::vector<CriticalStep>& steps, store::Op op,
            costs::AlgorithmChoice proposed) {
    double worse = 0;
    for (const CriticalStep& step : steps) {
        for (const facts::CommTask& task : step.tasks) {
            if (task.op != op || task.bytes <= 0 || !costs::isModelled(task.op, {task.algorithm, task.protocol}))
                continue;
            const std::optional<costs::LinkModel> link = linkOf(analysis, task);
            if (!link) continue;
            const int ranks = analysis.facts.communicators.at(task.communicatorId).size;
            const costs::Range then = costs::collectiveNs(*link, op, ranks, static_cast<double>(task.bytes), proposed);
            worse += std::max(0.0, then.high - static_cast<double>(task.transferNs()));
        }
    }
    return steps.empty() ? 0 : worse / static_cast<double>(steps.size());
}

const std::pair<const std::pair<store::Algorithm, store::Protocol>, double>& bestOf(const Group& group) {
    return *std::max_element(group.gains.begin(), group.gains.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// Variables of the job's environment that explain the present choice.
std::set<std::string> guilty(const job::Analysis& analysis, costs::AlgorithmChoice present,
                             costs::AlgorithmChoice best) {
    std::set<std::string> names;
    if (best.protocol != present.protocol && forced(analysis, "NCCL_PROTO")) names.insert("NCCL_PROTO");
    if (best.algorithm != present.algorithm && forced(analysis, "NCCL_ALGO")) names.insert("NCCL_ALGO");
    return names;
}

/// The setting for one operation, or a tuner table's line where that would hurt its other sizes.
std::string proposal(const job::Analysis& analysis, const std::vector<CriticalStep>& steps, const GroupKey& key,
                     const Group& group) {
    const auto& [pair, unused] = bestOf(group);
    const costs::AlgorithmChoice choice{pair.first, pair.second};
    const std::string name = costs::ncclName(key.op);
    std::string setting;
    if (choice.algorithm != key.present.algorithm)
        setting += fmt::format("NCCL_ALGO=\"{}:{}\"", name, costs::toSetting(choice.algorithm));
    if (choice.protocol != key.present.protocol)
        setting +=
            fmt::format("{}NCCL_PROTO=\"{}:{}\"", setting.empty() ? "" : " ", name, costs::toSetting(choice.protocol));
    const double worse = harm(analysis, steps, key.op, choice);
    const double gain = (group.presentNs - group.bestNs) / static_cast<double>(steps.size());
    if (worse <= 0.1 * gain)
        return fmt::format("for {} alone (NCCL 2.24 and later): {}{}", name, setting,
                           worse > 0 ? fmt::format("; its other sizes would lose {} a step", text::durationText(worse))
                                     : std::string());
    const auto& range = group.sizes.at(pair);
    const char* protocol = choice.protocol == store::Protocol::ll      ? "ll"
                           : choice.protocol == store::Protocol::ll128 ? "ll128"
                                                                       : "simple";
    return fmt::format(
        "not {} for all sizes, the others would lose {} a step: a tuner plugin's table chooses by size: "
        "{},{},{},{},{},-1,{},{}",
        setting, text::durationText(worse), name, range.first, range.second, costs::toSetting(choice.algorithm),
        protocol, key.nodes, key.ranks);
}

/// Time saved per step with the better choice for all messages of the losing groups.
std::vector<double> savings(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                            const std::map<GroupKey, Group>& losing, const std::set<store::Protocol>& seen) {
    std::vector<double> costs;
    for (const CriticalStep& step : steps) {
        std::vector<double> times = transfersOf(step);
        for (size_t i : step.own) {
            if (losing.count(keyOf(analysis, step.tasks[i])) == 0) continue;
            if (const auto verdict = judge(analysis, step.tasks[i], seen))
                times[i] = std::min(times[i], verdict->bestNs);
        }
        costs.push_back(savedAtMost(step, times));
    }
    return costs;
}

void describe(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
              const std::map<GroupKey, Group>& losing, job::Finding& finding) {
    const auto steps1 = static_cast<double>(steps.size());
    std::set<std::string> variables;
    std::vector<std::string> proposals;
    const Group* worst = nullptr;
    for (const auto& [key, group] : losing) {
        const costs::AlgorithmChoice best{bestOf(group).first.first, bestOf(group).first.second};
        variables.merge(guilty(analysis, key.present, best));
        proposals.push_back(proposal(analysis, steps, key, group));
        const std::string text = fmt::format(
            "{} of {} over {} ranks runs with {}/{}; {}/{} would take {:.2f} times less", store::toText(key.op),
            text::bytesText(group.bytes / group.messages), key.ranks, costs::toSetting(key.present.algorithm),
            costs::toSetting(key.present.protocol), costs::toSetting(best.algorithm), costs::toSetting(best.protocol),
            group.presentNs / group.bestNs);
        finding.evidence.facts.push_back(fmt::format("{}: {} of transfer a step, {} then", text,
                                                     text::durationText(group.presentNs / steps1),
                                                     text::durationText(group.bestNs / steps1)));
        if (worst != nullptr && worst->presentNs - worst->bestNs >= group.presentNs - group.bestNs) continue;
        worst = &group;
        finding.cause = text;
        finding.evidence.numbers = {{"present_ns_per_step", group.presentNs / steps1},
                                    {"best_ns_per_step", group.bestNs / steps1},
                                    {"ratio", group.presentNs / group.bestNs},
                                    {"message_bytes", group.bytes / group.messages}};
    }
    for (const std::string& variable : variables) {
        const std::string value = analysis.facts.text("env." + variable);
        finding.cause += fmt::format("; the environment has {}={}", variable, value);
        finding.fix.push_back(
            fmt::format("unset {} (now {}): NCCL then chooses by operation and size", variable, value));
    }
    finding.fix.insert(finding.fix.end(), proposals.begin(), proposals.end());
    finding.evidence.facts.push_back(
        "algorithm and protocol as the NCCL profiler plugin recorded them; times by hops x alpha + bytes / (bandwidth "
        "x the protocol's share)");
    const CriticalStep& shown = shownStep(analysis, steps, finding);
    for (size_t i : shown.own) {
        const facts::CommTask& task = shown.tasks[i];
        if (task.collectiveId == 0 || losing.count(keyOf(analysis, task)) == 0) continue;
        finding.evidence.rows.push_back(
            {"collective", task.collectiveId, shown.rank->rank,
             fmt::format("{}/{}", costs::toSetting(task.algorithm), costs::toSetting(task.protocol))});
        if (finding.evidence.rows.size() == 3) break;
    }
}

void detectAlgorithm(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::set<store::Protocol> seen = protocolsSeen(analysis);
    std::set<int64_t> all;
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (communicator.size > 1) all.insert(id);
    const std::vector<CriticalStep> steps = criticalSteps(analysis, all);
    if (steps.empty()) return;
    const bool byUser = forced(analysis, "NCCL_ALGO") || forced(analysis, "NCCL_PROTO");
    std::map<GroupKey, Group> losing;
    for (auto& [key, group] : groupsOf(analysis, steps, seen)) {
        if (group.gains.empty() || group.bestNs <= 0) continue;
        if (group.presentNs / group.bestNs >= (byUser ? kForcedRatio : kChosenRatio)) losing.emplace(key, group);
    }
    if (losing.empty()) return;
    const std::vector<double> costs = savings(analysis, steps, losing, seen);
    if (facts::median(costs) <= 0) return;
    job::Finding finding;
    finding.id = "RS205";
    std::set<int> ranks;
    std::set<int64_t> communicators;
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        const bool loses = std::any_of(losing.begin(), losing.end(), [&, &c = communicator](const auto& entry) {
            return entry.first.ranks == c.size && entry.first.nodes == c.nodes;
        });
        if (!loses) continue;
        communicators.insert(id);
        for (int rank : recordedMembers(analysis, communicator)) ranks.insert(rank);
    }
    finding.ranks.assign(ranks.begin(), ranks.end());
    finding.affectedRanks = finding.ranks;
    if (!communicators.empty()) finding.communicator = *communicators.begin();
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
    describe(analysis, steps, losing, finding);
    const bool reached = std::any_of(communicators.begin(), communicators.end(), [&](int64_t id) {
        return analysis.peaks.atLeast(analysis.facts.communicators.at(id));
    });
    if (reached)
        finding.evidence.facts.push_back(
            "no peak of the link is known: it carries at least what the job reached over it, and the protocol's flags "
            "with it");
    if (finding.verdict == job::Verdict::found)
        for (int64_t id : communicators) claims.takeTransfer("RS205", id, finding.costNs);
    findings.push_back(std::move(finding));
}

std::string missingForAlgorithm(const job::Analysis& analysis) {
    // What NCCL chose is told by its profiler plugin; a communicator of two ranks leaves it no choice that matters.
    bool asked = false;
    for (const store::Collective& collective : analysis.facts.collectives) {
        if (!collective.step || costs::algorithmChoices(collective.op).size() < 2) continue;
        if (collective.algorithm != store::Algorithm::unknown || collective.protocol != store::Protocol::unknown)
            return {};
        asked = true;
    }
    return asked ? "no algorithm or protocol recorded" : std::string();
}

Changes chosenAlgorithm(const job::Analysis&, const job::Finding&) {
    return {{"algorithm", {{"algo", "auto"}}}};
}

}  // namespace

const Diagnosis kAlgorithm{
    .id = "RS205",
    .title = "wrong algorithm or protocol",
    .definition =
        "The algorithm or protocol that the NCCL profiler plugin recorded loses to another for this operation, size "
        "and group. Times are hops x alpha + bus bytes / (bandwidth x share): ring all-reduce 2(P-1) hops, tree 2 "
        "ceil(log2 P); LL reaches a quarter to half of the bandwidth at 0.2 to 0.4 of the start-up, LL128 0.85 to 0.94 "
        "at 0.3 to 0.6, a tree 0.8 to 0.92. The present choice is taken at what was measured within its range, the "
        "other at its slow end. alpha and bandwidth come from the link peak, else from the fit, else the link carries "
        "at least what the job reached over it, with what the protocol leaves unused.",
    .thresholds = {kForcedRatio, kChosenRatio},
    .falsePositives =
        "NVLS, CollNet and PAT have no formula here and are never judged. LL128 is proposed only where the run uses "
        "it: elsewhere it may corrupt data. Kernel names prove nothing.",
    .fix =
        "Unset the variable, or the per-collective syntax (NCCL_PROTO=\"allreduce:Simple\"); a tuner plugin's table "
        "where the setting would hurt other sizes.",
    .hasSettings = true,
    .byCalls = true,
    .hint =
        "Framed are collectives for which NCCL took a slower algorithm or protocol than there is: red is longer "
        "than it had to be.",
    .detect = detectAlgorithm,
    .missing = missingForAlgorithm,
    .repair = chosenAlgorithm,
};

}  // namespace rs205
}  // namespace rankscope::diagnose
