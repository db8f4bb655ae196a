// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyzer/costs/nccl_names.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/algorithm_candidates.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

using Side = Outcome::Side;

struct Proposal {
    costs::NcclSetting setting;
    Outcome outcome;
    bool ncclsOwn = false;  // nothing is set
    double expectedNs = 0;  // medians of the saving per step
    double pessimisticNs = 0;
};

double savedNs(const AdviceContext& context, const Outcome& outcome, Side side) {
    return outcome.changed.empty() ? 0 : facts::median(context.predictor.scaledTransfers(outcome.scale(side)));
}

Proposal judge(const AdviceContext& context, const costs::NcclSetting& setting, Outcome outcome) {
    Proposal proposal{setting, std::move(outcome)};
    proposal.expectedNs = savedNs(context, proposal.outcome, Side::expected);
    proposal.pessimisticNs = savedNs(context, proposal.outcome, Side::pessimistic);
    return proposal;
}

/// Whether the choice is worth giving back to NCCL: what it has for certain gains, or what it may have even at the
/// unfavourable end of its estimate.
bool gainsIfFree(const AdviceContext& context, const AlgorithmCandidates& candidates, const Proposal& free) {
    using Unseen = AlgorithmCandidates::Unseen;
    if (free.expectedNs <= context.noiseNs) return false;
    const auto certain = candidates.with({}, Unseen::absent), had = candidates.with({}, Unseen::unfavourable);
    return (certain && savedNs(context, *certain, Side::expected) > context.noiseNs) ||
           (had && savedNs(context, *had, Side::pessimistic) > context.noiseNs);
}

/// One function after the other, each with the rule that gains most on top of those before it, judged by the
/// unfavourable end.
Proposal bestPerFunction(const AdviceContext& context, const AlgorithmCandidates& candidates, const Proposal& start) {
    Proposal best = start;
    for (store::Op op : candidates.ops()) {
        const Proposal before = best;
        for (const costs::FunctionRule& rule : candidates.rulesFor(op)) {
            costs::NcclSetting setting = before.setting;
            setting.rules[op] = rule;
            auto outcome = candidates.with(setting);
            // The shorter of two rules that do the same comes first.
            if (outcome &&
                savedNs(context, *outcome, Side::pessimistic) > best.pessimisticNs + 0.001 * context.analysis.stepNs)
                best = judge(context, setting, std::move(*outcome));
        }
    }
    return best;
}

/// What is forced now, spelled out for each of the job's functions, so that a rule for one of them leaves the others.
Proposal keptPerFunction(const AlgorithmCandidates& candidates, const PresentSetting& present) {
    Proposal kept;
    for (store::Op op : candidates.ops())
        if (const costs::FunctionRule& rule = present.rules.ruleOf(op); !rule.empty()) kept.setting.rules[op] = rule;
    return kept;
}

/// Writes what a setting leaves to NCCL as such.
std::string choiceText(costs::AlgorithmChoice choice) {
    const std::string algorithm = costs::ncclName(choice.algorithm), protocol = costs::ncclName(choice.protocol);
    if (choice.known()) return algorithm + "/" + protocol;
    return algorithm.empty() && protocol.empty() ? "what NCCL chooses by itself"
           : algorithm.empty()                   ? protocol + " with what algorithm NCCL chooses"
                                                 : algorithm + " with what protocol NCCL chooses";
}

const char* basisText(costs::Basis basis) {
    return basis == costs::Basis::measuredHere   ? "both measured in this run"
           : basis == costs::Basis::sweep        ? "both measured by nccl-tests"
           : basis == costs::Basis::otherVersion ? "measured by nccl-tests with another NCCL than the job's"
                                                 : "by NCCL's cost model on this job's links";
}

/// The collectives that gain or lose most.
std::vector<std::string> evidenceOf(const AlgorithmCandidates& candidates, const Outcome& outcome) {
    struct Line {
        double count = 0;
        double gainNs = 0;
        double nowNs = 0;
        costs::CostEstimate cost;
    };
    // Buckets of one layer kind differ by a few elements: one line for what reads the same.
    std::map<std::string, Line> byWhat;
    for (const MessageGroup& group : candidates.groups()) {
        const auto at = outcome.changed.find(group.key);
        if (at == outcome.changed.end()) continue;
        const costs::GroupShape shape = group.message.shape;
        Line& line = byWhat[fmt::format("{} of {} over {} ranks on {} a step: {} to {}", costs::ncclName(group.key.op),
                                        text::bytesText(group.message.bytes), shape.ranks,
                                        text::countedText(shape.nodes, "node"), choiceText(group.message.present),
                                        choiceText(at->second.choice))];
        if (line.count == 0) line.nowNs = group.message.presentNs, line.cost = at->second.cost;
        line.count += group.count;
        line.gainNs += std::abs(1 - at->second.cost.scale.expected) * group.totalNs;
    }
    std::vector<std::pair<double, std::string>> lines;
    for (const auto& [what, line] : byWhat) {
        const facts::Estimate then = line.cost.scale * line.nowNs;
        lines.emplace_back(line.gainNs, fmt::format("{:.4g}x {}, {} to {} each ({} to {}; {})", line.count, what,
                                                    text::durationText(line.nowNs), text::durationText(then.expected),
                                                    text::durationText(then.low), text::durationText(then.high),
                                                    basisText(line.cost.basis)));
    }
    std::ranges::sort(lines, std::ranges::greater{}, &std::pair<double, std::string>::first);
    std::vector<std::string> texts;
    for (const auto& [gain, text] : text::first(lines, 4)) texts.push_back(text);
    if (lines.size() > texts.size())
        texts.push_back(fmt::format("and {} other sizes or groups", lines.size() - texts.size()));
    return texts;
}

/// What gets slower by the change, for the reader to weigh.
std::string riskOf(const AlgorithmCandidates& candidates, const Outcome& outcome, int steps) {
    double slower = 0;
    for (const MessageGroup& group : candidates.groups()) {
        const auto at = outcome.changed.find(group.key);
        if (at != outcome.changed.end())
            slower += std::max(0.0, at->second.cost.scale.expected - 1) * group.totalNs / std::max(1, steps);
    }
    if (slower < 1'000)
        return "none of this job's collectives gets slower; sizes and groups it does not use were not judged";
    return fmt::format(
        "others of its collectives take {} a step longer, which the predicted gain already counts; sizes and groups it "
        "does not use were not judged",
        text::durationText(slower));
}

/// Median of the savings with an interval: from the quartiles of the pessimistic to those of the optimistic prediction.
/// It holds their means, too, which a step unlike the others (the first one of a run) pulls away from the medians.
facts::Estimate savingOf(const AdviceContext& context, const Outcome& outcome) {
    const auto saved = [&](Side side) { return context.predictor.scaledTransfers(outcome.scale(side)); };
    const double typical = facts::median(saved(Side::expected));
    const std::vector<double> least = saved(Side::pessimistic), most = saved(Side::optimistic);
    return {std::min({typical, facts::median(least), facts::mean(least)}) - facts::quartileHalfWidth(least), typical,
            std::max({typical, facts::median(most), facts::mean(most)}) + facts::quartileHalfWidth(most)};
}

Recommendation recommendationFrom(const AdviceContext& context, const AlgorithmCandidates& candidates,
                                  const Outcome& outcome) {
    Recommendation r;
    r.area = "algorithm";
    r.evidence = evidenceOf(candidates, outcome);
    r.basis = fmt::format("{}; step time by {}", basisText(outcome.weakest), context.predictor.name);
    r.risk = riskOf(candidates, outcome, static_cast<int>(context.analysis.steps.size()));
    r.savingNs = savingOf(context, outcome);
    r.certainty = outcome.weakest >= costs::Basis::otherVersion ? Certainty::tryAndMeasure : Certainty::recommended;
    if (context.found(diagnose::kAlgorithm)) r.findings = {diagnose::kAlgorithm.id};
    return r;
}

/// Takes away what the environment forces now and the r does not set anew, and says who did.
void giveBack(const AdviceContext& context, Recommendation& r) {
    const facts::TraceFacts& facts = context.analysis.facts;
    for (const std::string& name : presentSetting(context.analysis).forced) {
        const auto& then = r.settings.environment.try_emplace(name, givenBack(facts, name, context.nccl)).first->second;
        r.notes.push_back(originText(facts, name, then));
    }
}

std::string tuneCommand(const AdviceContext& context) {
    return fmt::format("rankscope tune --from-recommend {} -- COMMAND", text::shellWord(context.runName));
}

Recommendation unsetting(const AdviceContext& context, const AlgorithmCandidates& candidates, const Proposal& free) {
    Recommendation r = recommendationFrom(context, candidates, free.outcome);
    giveBack(context, r);
    std::vector<std::string> sayings;
    for (const auto& [name, then] : r.settings.environment)
        sayings.push_back(
            fmt::format("{} {} (now {})", then ? "empty" : "unset", name, context.analysis.facts.text("env." + name)));
    r.title = fmt::format("{}: NCCL then chooses by operation, size and group", fmt::join(sayings, " and "));
    // NCCL's tables know more of the hardware than the model, but what they choose may be what this machine is slow at.
    r.certainty = free.pessimisticNs > 0 ? Certainty::recommended : Certainty::tryAndMeasure;
    r.risk += "; if a variable was set against a known fault of this system, that comes back";
    r.verify = tuneCommand(context) + ", or run once without it and compare the steps (rankscope analyze)";
    return r;
}

/// "NCCL_ALGO=allreduce:ring NCCL_PROTO=allreduce:simple"; what is not set is left out.
std::string settingText(const costs::NcclSetting& setting) {
    std::vector<std::string> variables;
    if (const std::string algo = setting.algoValue(); !algo.empty()) variables.push_back("NCCL_ALGO=" + algo);
    if (const std::string proto = setting.protoValue(); !proto.empty()) variables.push_back("NCCL_PROTO=" + proto);
    return text::joined(variables, " ");
}

Recommendation perFunction(const AdviceContext& context, const AlgorithmCandidates& candidates,
                           const Proposal& proposal) {
    Recommendation r = recommendationFrom(context, candidates, proposal.outcome);
    const std::string algo = proposal.setting.algoValue(), proto = proposal.setting.protoValue();
    if (!algo.empty()) r.settings.environment["NCCL_ALGO"] = algo;
    if (!proto.empty()) r.settings.environment["NCCL_PROTO"] = proto;
    giveBack(context, r);
    r.title = settingText(proposal.setting);
    r.verify = tuneCommand(context);
    return r;
}

Recommendation tunerTable(const AdviceContext& context, const AlgorithmCandidates& candidates, const Outcome& outcome) {
    Recommendation r = recommendationFrom(context, candidates, outcome);
    r.settings.tuner = candidates.tableOf(outcome);
    giveBack(context, r);
    r.title = fmt::format("a tuner table of {}: each collective with the choice that is best for its size and group",
                          text::countedText(r.settings.tuner.size(), "row"));
    r.verify = fmt::format(
        "rankscope recommend {} --format tuner-csv -o tuner.csv && rankscope run --tuner tuner.csv -- COMMAND",
        text::shellWord(context.runName));
    return r;
}

/// Returns what a variable must gain on NCCL's own choice, ns: a share of the step as it is with that choice, of which
/// a job that a variable slows to a multiple says nothing.
double worthOfVariable(const AdviceContext& context, const Proposal& ncclsOwn) {
    return RecommendThresholds::kVariableShare * std::max(0.0, context.analysis.stepNs - ncclsOwn.expectedNs);
}

/// True when `better` gains enough more than `than` at its unfavourable end (with a model or tables of another NCCL:
/// what is worth a trial), and in expectation, too. NCCL's own choice is kept unless the expected gain is worth a
/// variable.
bool clearlyBeats(const AdviceContext& context, const Proposal& better, const Proposal& than) {
    const double step = context.analysis.stepNs;
    const double model =
        better.outcome.weakest >= costs::Basis::otherVersion ? RecommendThresholds::kTryShare * step : 0;
    const double worth = than.ncclsOwn ? worthOfVariable(context, than) : 0;
    return better.pessimisticNs > std::max(0.0, than.pessimisticNs) + std::max(context.noiseNs, model) &&
           better.expectedNs > than.expectedNs + std::max(context.noiseNs, worth);
}

std::string nothingBetter(const AdviceContext& context, const PresentSetting& present, const Proposal& base,
                          const Proposal& nearest, size_t looked) {
    const std::string who = !present.forced.empty() ? "what the environment sets now" : "NCCL's own choice";
    const std::string setting = settingText(nearest.setting);
    if (setting.empty())
        return fmt::format("keep {}: of {} other settings none shortens the step by more than its noise ({})", who,
                           looked, text::durationText(context.noiseNs));
    const std::string nearestText = fmt::format("keep {}: of {} other settings {}", who, looked, setting);
    const std::string gain = text::durationText(std::max(0.0, nearest.expectedNs));
    const double worth = base.ncclsOwn ? worthOfVariable(context, base) : 0;
    if (base.ncclsOwn && nearest.pessimisticNs > context.noiseNs && nearest.expectedNs <= base.expectedNs + worth)
        return fmt::format("{} gains most, {} a step: less than {:.0f} % of the step is not worth a variable",
                           nearestText, gain, 100 * RecommendThresholds::kVariableShare);
    const bool worthMeasuring = nearest.expectedNs > RecommendThresholds::kTryShare * context.analysis.stepNs;
    return fmt::format("{} comes nearest, {} a step, which is no more than chance or the model's error{}", nearestText,
                       gain,
                       worthMeasuring ? fmt::format("; what this machine makes of it is to be measured: rankscope tune "
                                                    "--sweep {} -o swept -- LAUNCHER",
                                                    text::shellWord(context.runName))
                                      : std::string());
}

}  // namespace

void adviseAlgorithms(const AdviceContext& context, Advice& advice) {
    const MessageList messages =
        context.predictor.messages ? context.predictor.messages() : messagesOf(context.analysis);
    if (messages.unknown > 0)
        advice.limits.push_back(
            fmt::format("algorithm and protocol of {} collectives are not recorded (NCCL's profiler plugin, 2.26 and "
                        "newer, tells them): no advice on them",
                        messages.unknown));
    if (messages.groups.empty()) return;
    const AlgorithmCandidates candidates(context, messages);
    const PresentSetting present = presentSetting(context.analysis);
    Proposal base{.ncclsOwn = present.forced.empty()};
    bool advised = false;
    if (!present.forced.empty()) {
        // Unsetting gives the choice back to NCCL, whose tables know more of the hardware than any model: the expected
        // gain decides.
        auto outcome = candidates.with({});
        const auto free = outcome ? std::optional(judge(context, {}, std::move(*outcome))) : std::nullopt;
        if (free && gainsIfFree(context, candidates, *free)) {
            advice.recommendations.push_back(unsetting(context, candidates, *free));
            advised = true;
            if (advice.recommendations.back().certainty == Certainty::recommended) {
                base = *free;
                base.ncclsOwn = true;
            }
        }
    }
    size_t looked = 0;
    for (store::Op op : candidates.ops()) looked += candidates.rulesFor(op).size();
    Proposal best = base, lastAdvised = base;
    if (context.nccl && context.nccl->perFunctionSyntax()) {
        best = bestPerFunction(context, candidates, base);
        const Proposal beside = bestPerFunction(context, candidates, keptPerFunction(candidates, present));
        if (beside.pessimisticNs > best.pessimisticNs) best = beside;
        if (clearlyBeats(context, best, base)) {
            Recommendation r = perFunction(context, candidates, best);
            if (r.certainty == Certainty::recommended && advised)
                advice.recommendations.pop_back();  // it holds that one, or gains surely what that one may
            advice.recommendations.push_back(std::move(r));
            advised = true;
            lastAdvised = best;
        }
    } else {
        advice.limits.push_back(
            context.nccl
                ? fmt::format("NCCL {} knows no settings per function (2.24 does): only a tuner table can tell "
                              "collectives apart",
                              context.nccl->text())
                : std::string(
                      "the version of NCCL is not recorded: no settings in its syntax per function (2.24 and newer)"));
    }
    const Proposal tabled = judge(context, {}, candidates.eachAtItsBest());
    if (clearlyBeats(context, tabled, lastAdvised)) {
        advice.recommendations.push_back(tunerTable(context, candidates, tabled.outcome));
        advised = true;
    }
    if (!advised) advice.kept.push_back({"algorithm", nothingBetter(context, present, base, best, looked)});
}

}  // namespace rankscope::recommend
