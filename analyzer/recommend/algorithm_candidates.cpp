// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/algorithm_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

namespace rankscope::recommend {
namespace {

void put(Outcome& outcome, const MessageGroup& group, const costs::CollectiveCost::Chosen& chosen) {
    if (chosen.choice == group.message.present) return;
    outcome.changed.emplace(group.key, chosen);
    outcome.weakest = std::max(outcome.weakest, chosen.cost.basis);
}

void add(TunerAdvice& row, const MessageGroup& group, const costs::CostEstimate& cost) {
    const double now = group.count * group.message.presentNs;
    row.perStep += group.count;
    row.nowNs += now;
    row.thenNs = row.thenNs + cost.scale * now;
}

/// By a row of larger messages with the same choice.
void extend(TunerAdvice& row, const TunerAdvice& next) {
    row.maxBytes = next.maxBytes;
    row.perStep += next.perStep;
    row.nowNs += next.nowNs;
    row.thenNs = row.thenNs + next.thenNs;
}

}  // namespace

TransferScale Outcome::scale(Side side) const {
    return [this, side](const MessageKey& key) {
        const auto at = changed.find(key);
        if (at == changed.end()) return 1.0;
        const costs::CostEstimate& cost = at->second.cost;
        return side == Side::expected      ? cost.scale.expected
               : side == Side::pessimistic ? cost.scale.high
                                           : cost.scale.low;
    };
}

PresentSetting presentSetting(const job::Analysis& analysis) {
    const std::string algo = analysis.facts.text("env.NCCL_ALGO"), proto = analysis.facts.text("env.NCCL_PROTO");
    PresentSetting present{{}, costs::NcclSetting::parse(algo, proto)};
    if (!algo.empty()) present.forced.push_back("NCCL_ALGO");
    if (!proto.empty()) present.forced.push_back("NCCL_PROTO");
    return present;
}

AlgorithmCandidates::AlgorithmCandidates(const AdviceContext& context, MessageList messages)
    : m_context(context), m_messages(std::move(messages)), m_present(presentSetting(context.analysis)) {
    addSupported();
    for (store::Protocol protocol : {store::Protocol::ll, store::Protocol::ll128, store::Protocol::simple})
        if (passedOver(protocol)) m_passedOver.insert(protocol);
}

void AlgorithmCandidates::addSupported() {
    for (const MessageGroup& group : m_messages.groups)
        m_supported.try_emplace({group.key.op, group.message.shape},
                                costs::supportedChoices(group.key.op, group.message.shape, m_context.nccl,
                                                        m_context.cost.evidence().seen()));
}

AlgorithmCandidates AlgorithmCandidates::of(MessageList messages) const {
    AlgorithmCandidates changed = *this;
    changed.m_messages = std::move(messages);
    changed.addSupported();
    return changed;
}

const std::vector<costs::AlgorithmChoice>& AlgorithmCandidates::supported(const MessageGroup& group) const {
    return m_supported.at({group.key.op, group.message.shape});
}

bool AlgorithmCandidates::passedOver(store::Protocol protocol) const {
    return std::ranges::any_of(m_messages.groups, [&](const MessageGroup& group) {
        const costs::AlgorithmChoice instead{group.message.present.algorithm, protocol};
        if (!m_present.rules.ruleOf(group.key.op).allows(instead)) return false;
        const auto cost = m_context.cost.of(group.message, instead);
        return cost && cost->scale.high < 1;
    });
}

std::vector<costs::AlgorithmChoice> AlgorithmCandidates::mayTake(const MessageGroup& group,
                                                                 const costs::FunctionRule& rule) const {
    std::vector<costs::AlgorithmChoice> choices;
    if (rule.protocols.size() == 1) return choices;  // not of its own accord
    for (costs::AlgorithmChoice choice :
         costs::unseenChoices(group.key.op, group.message.shape, m_context.cost.evidence().seen()))
        if (rule.allows(choice) && !m_present.rules.ruleOf(group.key.op).allows(choice) &&
            !m_passedOver.contains(choice.protocol))
            choices.push_back(choice);
    return choices;
}

std::vector<store::Op> AlgorithmCandidates::ops() const {
    std::set<store::Op> all;
    for (const MessageGroup& group : m_messages.groups) all.insert(group.key.op);
    return {all.begin(), all.end()};
}

std::optional<Outcome> AlgorithmCandidates::with(const costs::NcclSetting& setting, Unseen unseen) const {
    Outcome outcome;
    for (const MessageGroup& group : m_messages.groups) {
        const costs::FunctionRule& rule = setting.ruleOf(group.key.op);
        // NCCL preferred its present choice to all that was allowed: it changes only to what was not, or where it must.
        const bool stays = rule.allows(group.message.present);
        // What was measured under this very setting tells more than what each choice in it would take.
        const bool free = m_present.rules.ruleOf(group.key.op).empty();
        const auto measured = stays && free ? std::nullopt : m_context.cost.under(group.message, rule);
        if (measured) {
            put(outcome, group, *measured);
            continue;
        }
        std::vector<costs::AlgorithmChoice> allowed;
        for (costs::AlgorithmChoice choice : supported(group))
            if (rule.allows(choice) && !(stays && m_present.rules.ruleOf(group.key.op).allows(choice)))
                allowed.push_back(choice);
        if (stays) allowed.push_back(group.message.present);
        if (allowed.empty() && !rule.allows(group.message.present)) return std::nullopt;
        const std::vector<costs::AlgorithmChoice> mayHave =
            unseen == Unseen::absent ? std::vector<costs::AlgorithmChoice>{} : mayTake(group, rule);
        if (unseen == Unseen::unfavourable) allowed.insert(allowed.end(), mayHave.begin(), mayHave.end());
        const auto chosen = m_context.cost.chosenByNccl(group.message, allowed, mayHave);
        if (chosen)
            put(outcome, group, *chosen);
        else if (!rule.allows(group.message.present))
            return std::nullopt;  // nothing tells its cost
    }
    return outcome;
}

std::vector<costs::FunctionRule> AlgorithmCandidates::rulesFor(store::Op op) const {
    std::set<store::Algorithm> algorithms;
    std::set<store::Protocol> protocols;
    std::vector<costs::FunctionRule> rules;
    std::set<std::pair<store::Algorithm, store::Protocol>> pairs;
    for (const auto& [where, choices] : m_supported) {
        if (where.first != op) continue;
        for (costs::AlgorithmChoice choice : choices) {
            algorithms.insert(choice.algorithm);
            protocols.insert(choice.protocol);
            pairs.insert({choice.algorithm, choice.protocol});
        }
    }
    if (algorithms.size() > 1)
        for (store::Algorithm algorithm : algorithms) rules.push_back({{algorithm}, {}});
    if (protocols.size() > 1)
        for (store::Protocol protocol : protocols) rules.push_back({{}, {protocol}});
    if (algorithms.size() > 1 && protocols.size() > 1)
        for (const auto& [algorithm, protocol] : pairs) rules.push_back({{algorithm}, {protocol}});
    return rules;
}

Outcome AlgorithmCandidates::eachAtItsBest() const {
    Outcome outcome;
    for (const MessageGroup& group : m_messages.groups) {
        std::optional<costs::CollectiveCost::Chosen> best;
        for (costs::AlgorithmChoice choice : supported(group)) {
            const auto cost = m_context.cost.of(group.message, choice);
            if (cost && cost->scale.high < (best ? best->cost.scale.high : 1))
                best = costs::CollectiveCost::Chosen{choice, *cost};
        }
        if (best) put(outcome, group, *best);
    }
    return outcome;
}

std::vector<TunerAdvice> AlgorithmCandidates::tableOf(const Outcome& outcome) const {
    std::map<std::pair<store::Op, costs::GroupShape>, std::map<int64_t, std::optional<TunerAdvice>>> bySize;
    for (const MessageGroup& group : m_messages.groups) {
        auto& row = bySize[{group.key.op, group.message.shape}][group.key.bytes];
        const auto at = outcome.changed.find(group.key);
        if (at == outcome.changed.end()) continue;
        if (!row)
            row = TunerAdvice{group.key.op, group.key.bytes, group.key.bytes, at->second.choice, group.message.shape};
        add(*row, group, at->second.cost);
    }
    std::vector<TunerAdvice> table;
    for (const auto& [where, sizes] : bySize) {
        bool open = false;
        for (const auto& [bytes, row] : sizes) {
            if (open && row && row->choice == table.back().choice)
                extend(table.back(), *row);
            else if (row)
                table.push_back(*row);
            open = row.has_value();
        }
    }
    return table;
}

TransferChange transferChangeOf(const AdviceContext& context, const Settings& settings) {
    const auto algo = settings.environment.find("NCCL_ALGO"), proto = settings.environment.find("NCCL_PROTO");
    const auto end = settings.environment.end();
    if (algo == end && proto == end && settings.tuner.empty()) return {};
    const auto valueOf = [&](auto at) { return at == end ? std::string() : at->second.value_or(""); };
    const bool tabled = !settings.tuner.empty();
    const costs::NcclSetting setting = costs::NcclSetting::parse(valueOf(algo), valueOf(proto));
    const auto recorded = std::make_shared<const AlgorithmCandidates>(context, messagesOf(context.analysis));
    const auto scales = [recorded, setting, tabled](const MessageList& messages) -> std::optional<TransferScales> {
        const AlgorithmCandidates candidates = recorded->of(messages);
        auto outcome = tabled ? std::optional(candidates.eachAtItsBest()) : candidates.with(setting);
        if (!outcome) return std::nullopt;
        const auto kept = std::make_shared<const Outcome>(std::move(*outcome));
        const auto side = [&](Outcome::Side which) -> TransferScale {
            return [kept, scale = kept->scale(which)](const MessageKey& key) { return scale(key); };
        };
        return TransferScales{side(Outcome::Side::expected), side(Outcome::Side::pessimistic),
                              side(Outcome::Side::optimistic)};
    };
    return {tabled ? "tuner table" : "NCCL_ALGO=" + valueOf(algo) + " NCCL_PROTO=" + valueOf(proto), scales};
}

SettingOrigin originOf(const facts::TraceFacts& facts, const std::string& variable) {
    const std::string value = facts.text("env." + variable);
    if (const auto given = facts.meta.find("run_env." + variable); given != facts.meta.end() && given->second == value)
        return SettingOrigin::option;
    if (facts.text("start_env") != "recorded") return SettingOrigin::unknown;
    const auto there = facts.meta.find("start_env." + variable);
    return there != facts.meta.end() && there->second == value ? SettingOrigin::shell : SettingOrigin::job;
}

std::optional<std::string> givenBack(const facts::TraceFacts& facts, const std::string& variable,
                                     const std::optional<costs::NcclVersion>& nccl) {
    const SettingOrigin origin = originOf(facts, variable);
    if (origin == SettingOrigin::shell || origin == SettingOrigin::option || !nccl || !nccl->perFunctionSyntax())
        return std::nullopt;
    return "";
}

std::string originText(const facts::TraceFacts& facts, const std::string& variable,
                       const std::optional<std::string>& then) {
    const std::string setting = variable + "=" + facts.text("env." + variable);
    std::string reach = "take it out there, where a shell's unset does not reach";
    if (then) reach = "what the shell exports holds if that sets only what is not set yet; else change it there";
    if (then && then->empty()) reach += " (empty is as good as unset to NCCL from 2.24 on)";
    switch (originOf(facts, variable)) {
        case SettingOrigin::shell:
            return fmt::format("{} is in the environment of `rankscope run`", setting);
        case SettingOrigin::option:
            return fmt::format("{} was given with --env: change it there", setting);
        case SettingOrigin::job:
            return fmt::format(
                "{} was not in the environment of `rankscope run`: the job's script or its launcher's options set it; "
                "{}",
                setting, reach);
        case SettingOrigin::unknown:
            break;
    }
    return fmt::format("who set {} is not recorded; if it was the job's script or its launcher's options, {}", setting,
                       reach);
}

}  // namespace rankscope::recommend
