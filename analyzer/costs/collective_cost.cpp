// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/collective_cost.h"

#include <algorithm>
#include <cmath>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/ratio_curve.h"
#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

using store::Protocol;

/// Among the hardware latencies in NCCL 2.28 (tuning.cc: NVLink, PCIe and network, tree and ring) LL128's place in its
/// range is 0 to 0.87 above LL's in its own, 0.3 on average. kBelow is what a place read from a trace may be off by.
constexpr double kBelow = 0.25, kAbove = 0.87, kBetween = 0.3;
constexpr double kOtherAlgorithm = 2 * kSameProtocol;

double clamped(double place) {
    return std::clamp(place, 0.0, 1.0);
}

facts::Communicator groupOf(const facts::TraceFacts& facts, GroupShape shape) {
    for (const auto& [id, communicator] : facts.communicators)
        if (shapeOf(communicator) == shape) return communicator;
    return {};
}

/// Returns the error of a time, as a share of it, by the end that is further off.
double errorOf(const facts::Estimate& ns) {
    return std::max(ns.high / ns.expected, ns.expected / std::max(ns.low, 1.0)) - 1;
}

/// Returns the time of a message by a curve with kinks, whose interval reaches up to one beside it. A message that was
/// seen tells on which side it lies: it takes markedly longer than the smooth curve has, and no longer than the kink,
/// where it lies in it, and what it takes where it does not.
facts::Estimate besideKink(const facts::Estimate& curveNs, double seenNs) {
    constexpr double kSeen = 1 + SizeCurve::kWorldError;
    if (seenNs < curveNs.low / kSeen || seenNs > curveNs.high * kSeen || errorOf(curveNs) <= SizeCurve::kWorldError)
        return curveNs;
    return {seenNs / kSeen, seenNs, seenNs * kSeen};
}

/// Returns how many times as long messages of the one curve take as those of the other. `seenNs`: what one of the first
/// took by itself; 0 where others' transfers may have lengthened it.
std::optional<facts::Estimate> ratio(const CostCurve* now, const CostCurve* then, double bytes, double seenNs) {
    if (now == nullptr || then == nullptr) return std::nullopt;
    if (now == then) return facts::Estimate{1, 1, 1};
    auto nowNs = now->at(bytes), thenNs = then->at(bytes);
    if (!nowNs || !thenNs) return std::nullopt;
    const double smoothNs = nowNs->expected;
    if (!now->sizes.kinks().empty()) nowNs = besideKink(*nowNs, seenNs);
    const bool inItsKink = nowNs->expected >= SizeCurve::kKink * smoothNs;
    const double scale = thenNs->expected / nowNs->expected;
    const double error = std::hypot(errorOf(*nowNs), errorOf(*thenNs));
    const facts::Estimate apart{scale / (1 + error), scale, scale * (1 + error)};
    if (inItsKink) return apart;
    // What both curves share their ratio does not have: its own error counts, be it larger or smaller than theirs.
    return RatioCurve(now->sizes, then->sizes).at(bytes).value_or(apart);
}

/// Returns what a comparison of two tables rests on.
Basis basisOf(const CostCurve& now, const CostCurve& then) {
    return now.otherVersion || then.otherVersion ? Basis::otherVersion : Basis::sweep;
}

/// Returns a rule as tables name it, with what it leaves to NCCL unknown. Nothing where it names several.
std::optional<AlgorithmChoice> settingOf(const FunctionRule& rule) {
    if (rule.algorithms.size() > 1 || rule.protocols.size() > 1) return std::nullopt;
    return AlgorithmChoice{rule.algorithms.empty() ? store::Algorithm::unknown : *rule.algorithms.begin(),
                           rule.protocols.empty() ? store::Protocol::unknown : *rule.protocols.begin()};
}

/// Returns what a price by the formulas may be: they have a range, and published times are off from its middle by an
/// error that holds whatever makes the range.
facts::Estimate offBy(double error, const facts::Estimate& ns) {
    return {std::min(ns.low, ns.expected / error), ns.expected, std::max(ns.high, ns.expected * error)};
}

/// A transfer counts as alone with less than this share of it beside another that shares its link: at half the rate
/// meanwhile, half of this share at most is owed to it, which is under CostLine::kError.
constexpr double kAlone = 0.05;

double aloneNs(const Message& message) {
    return message.sharedPart > kAlone ? 0 : message.presentNs;
}

/// NCCL's own figures and the middle of the formulas differ by this share at most: it takes the rates that it detects
/// and its own latencies, where users tell theirs.
constexpr double kChoiceDoubt = 0.3;

}  // namespace

ProtocolLatency::ProtocolLatency(const LinkPeaks& peaks, const facts::TraceFacts& facts, const CostEvidence& evidence) {
    for (const auto& [key, curve] : evidence.curves()) {
        const bool flags = key.choice.protocol == Protocol::ll || key.choice.protocol == Protocol::ll128;
        if (key.from != EvidenceFrom::trace || !flags || !isModelled(key.op, key.choice)) continue;
        const auto link = linkModel(peaks, groupOf(facts, key.shape), key.op);
        if (!link || link->alphaNs <= 0) continue;
        const Range hops = latencyHops(*link, key.op, key.shape.ranks, key.choice);
        for (const auto& [bytes, unused] : curve.timesBySize) {
            const auto time = curve.at(bytes);
            if (!time) continue;
            const Range bandwidth = bandwidthShare(*link, key.op, key.choice, bytes);
            const double busNs = bytes * facts::busFactor(key.op, key.shape.ranks) / link->bytesPerNs;
            const auto place = [&](double share) {
                return clamped(((time->expected - busNs / share) / link->alphaNs - hops.low) / (hops.high - hops.low));
            };
            const double least = place(bandwidth.low), most = place(bandwidth.high);
            Known& best = m_known[{key.shape, key.choice.protocol}];
            if (most - least < best.doubt) best = {(least + most) / 2, most - least};
        }
    }
}

const ProtocolLatency::Known* ProtocolLatency::known(GroupShape shape, Protocol protocol) const {
    const auto at = m_known.find({shape, protocol});
    return at == m_known.end() || at->second.doubt > kOtherAlgorithm ? nullptr : &at->second;
}

facts::Estimate ProtocolLatency::of(GroupShape shape, Protocol protocol) const {
    const auto around = [](const Known& known, double below, double shift, double above) {
        const double slack = known.doubt / 2;
        return facts::Estimate{clamped(known.place - below - slack), clamped(known.place + shift),
                               clamped(known.place + above + slack)};
    };
    if (const Known* same = known(shape, protocol)) return around(*same, kOtherAlgorithm, 0, kOtherAlgorithm);
    const bool ll = protocol == Protocol::ll;
    if (const Known* other = known(shape, ll ? Protocol::ll128 : Protocol::ll))
        return ll ? around(*other, kAbove, -kBetween, kBelow) : around(*other, kBelow, kBetween, kAbove);
    return {0, 0.5, 1};
}

CollectivePrice CollectiveCost::price(const facts::Communicator& communicator, store::Op op,
                                      CollectivePrice::Sizes sizes) const {
    if (communicator.size < 2) return CollectivePrice(op, communicator.size, std::move(sizes), std::nullopt, {});
    ChoiceRules rules{supportedChoices(op, shapeOf(communicator), m_version, m_evidence.seen()),
                      unseenChoices(op, shapeOf(communicator), m_evidence.seen())};
    for (std::vector<AlgorithmChoice>* choices : {&rules.allowed, &rules.mayHave})
        std::erase_if(*choices, [&](AlgorithmChoice choice) {
            return !isModelled(op, choice) || !m_forced.ruleOf(op).allows(choice);
        });
    CollectivePrice::Tables tables;
    if (const CostCurve* own = settingTable(shapeOf(communicator), op)) tables.ofSetting = own->sizes;
    for (AlgorithmChoice choice : rules.allowed)
        if (const CostCurve* curve = table(shapeOf(communicator), op, choice))
            tables.ofChoice.emplace(choice, curve->sizes);
    return CollectivePrice(op, communicator.size, std::move(sizes), linkModel(m_peaks, communicator, op),
                           std::move(rules), std::move(tables));
}

const CostFit* CollectiveCost::line(int64_t communicator, store::Op op) const {
    const auto at = std::ranges::find_if(
        m_lines, [&](const CostFit& fit) { return fit.communicatorId == communicator && fit.op == op; });
    return at == m_lines.end() ? nullptr : &*at;
}

std::optional<CostEstimate> CollectiveCost::of(const Message& message, AlgorithmChoice choice) const {
    if (choice == message.present) return CostEstimate{{1, 1, 1}, Basis::measuredHere};
    if (auto here = compared(message, choice, EvidenceFrom::trace)) return here;
    if (auto sweep = compared(message, choice, EvidenceFrom::ncclTests)) return sweep;
    const auto model = modelled(message, choice);
    return model ? std::optional(heldToTables(message, choice, *model)) : std::nullopt;
}

std::optional<CostEstimate> CollectiveCost::compared(const Message& message, AlgorithmChoice choice,
                                                     EvidenceFrom from) const {
    const bool trace = from == EvidenceFrom::trace;
    const CostCurve* now =
        trace ? m_evidence.find({from, message.shape, message.op, message.present}) : presentTable(message);
    const CostCurve* then = m_evidence.find({from, message.shape, message.op, choice});
    const auto scale = ratio(now, then, message.bytes, aloneNs(message));
    if (!scale) return std::nullopt;
    return CostEstimate{*scale, trace ? Basis::measuredHere : basisOf(*now, *then)};
}

const CostCurve* CollectiveCost::table(GroupShape shape, store::Op op, AlgorithmChoice setting) const {
    return m_evidence.find({EvidenceFrom::ncclTests, shape, op, setting});
}

const CostCurve* CollectiveCost::presentTable(const Message& message) const {
    const FunctionRule& rule = m_forced.ruleOf(message.op);
    const auto [algorithm, protocol] = message.present;
    std::vector<AlgorithmChoice> settings{message.present};
    if (const auto own = settingOf(rule)) settings.push_back(*own);
    if (rule.protocols.empty()) settings.push_back({algorithm, store::Protocol::unknown});
    if (rule.algorithms.empty()) settings.push_back({store::Algorithm::unknown, protocol});
    for (const AlgorithmChoice setting : settings)
        if (const CostCurve* curve = table(message.shape, message.op, setting);
            curve != nullptr && curve->at(message.bytes))
            return curve;
    return nullptr;
}

const CostCurve* CollectiveCost::settingTable(GroupShape shape, store::Op op) const {
    const auto setting = settingOf(m_forced.ruleOf(op));
    return setting ? table(shape, op, *setting) : nullptr;
}

const CostCurve* CollectiveCost::tableBehind(const SizedTime& time, const Message& message,
                                             const FunctionRule& rule) const {
    const CostCurve* nearest = nullptr;
    double leastOff = 0;
    for (const auto& [key, curve] : m_evidence.curves()) {
        if (key.from != EvidenceFrom::ncclTests || key.shape != message.shape || key.op != message.op) continue;
        if (!key.choice.known() || !rule.allows(key.choice)) continue;
        const auto same = std::ranges::find(curve.sizes.points(), time.bytes, &SizedTime::bytes);
        if (same == curve.sizes.points().end()) continue;
        const double off = std::abs(std::log(same->ns / time.ns));
        if (off <= std::log1p(std::hypot(same->error, time.error)) && (nearest == nullptr || off < leastOff))
            nearest = &curve, leastOff = off;
    }
    return nearest;
}

std::optional<facts::Estimate> CollectiveCost::betweenChoices(const Message& message, const FunctionRule& rule,
                                                              const CostCurve& mixed) const {
    const std::vector<SizedTime>& points = mixed.sizes.points();
    const auto above = std::ranges::lower_bound(points, message.bytes, {}, &SizedTime::bytes);
    if (above == points.begin() || above == points.end()) return std::nullopt;
    const SizedTime& below = *std::prev(above);
    if (message.bytes <= below.bytes * SizeCurve::kAlike || message.bytes * SizeCurve::kAlike >= above->bytes)
        return std::nullopt;
    const CostCurve *first = tableBehind(below, message, rule), *second = tableBehind(*above, message, rule);
    const std::optional<LinkModel> link = linkOf(message);
    if (first == nullptr || second == nullptr || first == second || !link) return std::nullopt;
    if (!isModelled(message.op, first->key.choice) || !isModelled(message.op, second->key.choice)) return std::nullopt;
    const CostCurve* now = presentTable(message);
    const auto one = ratio(now, first, message.bytes, aloneNs(message)),
               other = ratio(now, second, message.bytes, aloneNs(message));
    if (!one || !other) return std::nullopt;
    const auto modelNs = [&](const CostCurve& curve) {
        return collectiveNs(*link, message.op, message.shape.ranks, message.bytes, curve.key.choice).middle();
    };
    const double expected = modelNs(*first) <= modelNs(*second) ? one->expected : other->expected;
    return facts::Estimate{std::min(one->low, other->low), expected, std::max(one->high, other->high)};
}

std::optional<CollectiveCost::Chosen> CollectiveCost::under(const Message& message, const FunctionRule& rule) const {
    const auto setting = settingOf(rule);
    if (!setting || setting->known()) return std::nullopt;
    const CostCurve *now = presentTable(message), *then = table(message.shape, message.op, *setting);
    auto scale = ratio(now, then, message.bytes, aloneNs(message));
    if (!scale) return std::nullopt;
    if (now != then) scale = betweenChoices(message, rule, *then).value_or(*scale);
    return Chosen{now == then ? message.present : *setting, {*scale, basisOf(*now, *then)}};
}

/// NCCL takes for a message what is fastest of what a setting allows, or means to: a choice within it is no faster than
/// what was measured under the setting. Where nothing is set that holds for every choice.
CostEstimate CollectiveCost::heldToTables(const Message& message, AlgorithmChoice choice, CostEstimate estimate) const {
    for (const FunctionRule& rule :
         {FunctionRule{}, FunctionRule{{choice.algorithm}, {}}, FunctionRule{{}, {choice.protocol}}}) {
        const auto measured = under(message, rule);
        if (!measured) continue;
        facts::Estimate& scale = estimate.scale;
        const facts::Estimate& least = measured->cost.scale;
        scale = {std::max(scale.low, least.low), std::max(scale.expected, least.expected),
                 std::max(scale.high, least.high)};
    }
    return estimate;
}

std::optional<LinkModel> CollectiveCost::linkOf(const Message& message) const {
    facts::Communicator group;
    group.size = message.shape.ranks;
    group.nodes = message.shape.nodes;
    group.smallestNode = message.smallestNode;
    const std::optional<LinkModel> given = linkWithLatency(m_peaks, group, message.op);
    if (given && !m_peaks.atLeast(group, message.op)) return given;
    const CostCurve* curve = m_evidence.find({EvidenceFrom::trace, message.shape, message.op, message.present});
    if (curve == nullptr || !curve->line || !(curve->line->betaNsPerByte > 0) ||
        !isModelled(message.op, message.present))
        return given;
    // These are the bus bytes of a byte and the hops of a latency: what the choice itself costs.
    const int ranks = message.shape.ranks;
    const double rate = facts::busFactor(message.op, ranks) / curve->line->betaNsPerByte;
    LinkModel link = given.value_or(linkOfRate(group, rate, unknownAlphaNs(group.nodes > 1)));
    if (!given) link.bytesPerNs /= bandwidthShare(link, message.op, message.present, kAnySize).high;
    link.alphaNs = curve->line->alphaNs / latencyHops(link, message.op, ranks, message.present).high;
    link.bytesPerNs = rate / bandwidthShare(link, message.op, message.present, kAnySize).high;
    return link;
}

facts::Estimate CollectiveCost::modelledNs(const LinkModel& link, const Message& message, double explainedNs,
                                           AlgorithmChoice choice) const {
    const AlgorithmChoice present = message.present;
    const double busNs = message.bytes * facts::busFactor(message.op, message.shape.ranks) / link.bytesPerNs;
    const Range hops = latencyHops(link, message.op, message.shape.ranks, choice),
                bandwidth = bandwidthShare(link, message.op, choice, message.bytes);
    const facts::Estimate start = m_latency.of(message.shape, choice.protocol);
    facts::Estimate rate{0, 0.5, 1};
    if (choice.protocol == present.protocol && isModelled(message.op, present)) {
        // What is left of the present time says which share of the bandwidth the protocol reaches here.
        const Range reached = bandwidthShare(link, message.op, present, message.bytes);
        const double startNs =
            latencyHops(link, message.op, message.shape.ranks, present).at(start.expected) * link.alphaNs;
        const double share = explainedNs > startNs ? busNs / (explainedNs - startNs) : reached.high;
        const double place = reached.high > reached.low
                                 ? std::clamp((share - reached.low) / (reached.high - reached.low), 0.0, 1.0)
                                 : 0.5;
        rate = {std::max(0.0, place - kSameProtocol), place, std::min(1.0, place + kSameProtocol)};
    }
    const auto timeNs = [&](double startPlace, double ratePlace) {
        return hops.at(startPlace) * link.alphaNs + busNs / bandwidth.at(ratePlace);
    };
    return {timeNs(start.low, rate.high), timeNs(start.expected, rate.expected), timeNs(start.high, rate.low)};
}

std::optional<CostEstimate> CollectiveCost::modelled(const Message& message, AlgorithmChoice choice) const {
    if (!isModelled(message.op, choice)) return std::nullopt;
    std::optional<LinkModel> link = linkOf(message);
    if (!link) return std::nullopt;
    // Where the measured time lies outside of what the formulas allow for the present choice, the rest stays whatever
    // the choice.
    double explained = message.presentNs, fastest = explained, linkBound = 0;
    if (isModelled(message.op, message.present)) {
        link = seenLink(*link, message.op, message.shape.ranks, message.bytes, message.present, message.presentNs);
        const Range now = collectiveNs(*link, message.op, message.shape.ranks, message.bytes, message.present);
        explained =
            explainedNs(*link, message.op, message.shape.ranks, message.bytes, message.present, message.presentNs);
        // Where it takes longer than the link alone explains, the device holds the protocol; where it also takes longer
        // than that usually does, the link may be slower than stated as well.
        const double boundNs = linkBoundNs(*link, message.op, message.shape.ranks, message.bytes, message.present);
        if (message.presentNs > std::max(boundNs, now.middle()) * (1 + CostLine::kError)) linkBound = boundNs;
        // What others on the links take stays as well: where they were under way the present choice may be as good as
        // the formulas allow.
        fastest = message.sharedPart > kAlone ? std::min(explained, now.low) : explained;
    }
    const double expected = explained * std::pow(fastest / explained, message.sharedPart);
    const double error = 1 + modelError(*link, message.bytes), ofRatio = 1 + sizeError(*link, message.bytes);
    const facts::Estimate then = offBy(error, modelledNs(*link, message, expected, choice));
    facts::Estimate scale{then.low / explained, then.expected / expected, then.high / fastest};
    // A link that is slow is so for every choice: the present time says how slow, as it does for another size.
    if (linkBound > 0)
        scale.high =
            std::max(scale.high, offBy(ofRatio, modelledNs(*link, message, linkBound, choice)).high / linkBound);
    return CostEstimate{scale, Basis::model};
}

std::optional<CollectiveCost::Chosen> CollectiveCost::chosenByNccl(const Message& message,
                                                                   const std::vector<AlgorithmChoice>& allowed,
                                                                   const std::vector<AlgorithmChoice>& mayHave) const {
    struct Candidate {
        Chosen chosen;
        double modelNs = 0;  // what NCCL has in its own table
        bool sure = true;
    };
    const std::optional<LinkModel> link = linkOf(message);
    const auto modelNs = [&](AlgorithmChoice choice) -> std::optional<double> {
        if (!link || !isModelled(message.op, choice)) return std::nullopt;
        return collectiveNs(*link, message.op, message.shape.ranks, message.bytes, choice).middle();
    };
    const double presentNs = modelNs(message.present).value_or(message.presentNs);
    std::vector<Candidate> candidates;
    const auto add = [&](const std::vector<AlgorithmChoice>& choices, bool sure) {
        for (AlgorithmChoice choice : choices)
            // Where the formulas have nothing, NCCL's table is taken to have what was measured.
            if (const auto cost = of(message, choice))
                candidates.push_back(
                    {{choice, *cost}, modelNs(choice).value_or(presentNs * cost->scale.expected), sure});
    };
    add(allowed, true);
    if (candidates.empty()) return std::nullopt;
    const double surelyNs = std::ranges::min(candidates, {}, &Candidate::modelNs).modelNs;
    add(mayHave, false);
    const Candidate& first = std::ranges::min(candidates, {}, &Candidate::modelNs);
    auto [scale, basis] = first.chosen.cost;
    for (const Candidate& candidate : candidates) {
        if (candidate.modelNs > surelyNs * (1 + kChoiceDoubt)) continue;
        basis = std::max(basis, candidate.chosen.cost.basis);
        scale.low = std::min(scale.low, candidate.chosen.cost.scale.low);
        if (candidate.sure) scale.high = std::max(scale.high, candidate.chosen.cost.scale.high);
    }
    Chosen result = first.chosen;
    result.cost = {scale, basis};
    return result;
}

}  // namespace rankscope::costs
