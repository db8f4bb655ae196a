// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/collective_price.h"

#include <algorithm>
#include <cmath>

#include "analyzer/costs/cost_fit.h"
#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

facts::Estimate hull(const facts::Estimate& a, const facts::Estimate& b) {
    return {std::min(a.low, b.low), a.expected, std::max(a.high, b.high)};
}

/// Widens an estimate with the distance to what was measured: further from it the formulas are known less well.
facts::Estimate widened(facts::Estimate estimate, double bytes, double measuredBytes, double error) {
    const double away = std::min(1.0, std::abs(std::log(bytes / measuredBytes)) / std::log(SizeCurve::kSmallestRange));
    estimate.low /= 1 + error * away;
    estimate.high *= 1 + error * away;
    return estimate;
}

const std::pair<const double, SizedPrice>& nearestOf(const CollectivePrice::Sizes& sizes, double bytes) {
    const auto above = sizes.lower_bound(bytes);
    if (above == sizes.end()) return *std::prev(above);
    if (above == sizes.begin()) return *above;
    return bytes / std::prev(above)->first < above->first / bytes ? *std::prev(above) : *above;
}

bool covers(const SizeCurve& table, double bytes) {
    return bytes >= table.smallestBytes() && bytes <= table.largestBytes();
}

}  // namespace

CollectivePrice::CollectivePrice(store::Op op, int ranks, Sizes sizes, const std::optional<LinkModel>& link,
                                 ChoiceRules rules, Tables tables)
    : m_op(op), m_ranks(ranks), m_sizes(std::move(sizes)), m_tables(std::move(tables)), m_rules(std::move(rules)) {
    m_curve = curveOf(m_sizes);
    if (!link || link->alphaNs <= 0 || link->bytesPerNs <= 0) return;
    m_state = LinkState{
        *link, {link->alphaNs, link->alphaNs, link->alphaNs}, {link->bytesPerNs, link->bytesPerNs, link->bytesPerNs}};
    readChoices();
    readState();
    readShares();
}

SizeCurve CollectivePrice::curveOf(const Sizes& sizes) {
    std::vector<SizedTime> points;
    for (const auto& [bytes, sample] : sizes)
        if (sample.ns > 0) points.push_back({bytes, sample.ns, kErrors * sample.errorNs / sample.ns});
    return SizeCurve(std::move(points));
}

/// Puts sizes by what was seen to run them, and finds out whether NCCL was free to choose.
void CollectivePrice::readChoices() {
    bool forced = false;
    for (auto& [bytes, sample] : m_sizes) {
        const auto timeNs = [&, size = bytes](AlgorithmChoice choice) {
            return collectiveNs(m_state->link, m_op, m_ranks, size, choice);
        };
        if (!sample.choice.known()) {
            const auto cheapest = std::ranges::min_element(
                m_rules.allowed, {}, [&](AlgorithmChoice choice) { return timeNs(choice).middle(); });
            if (cheapest != m_rules.allowed.end()) sample.choice = *cheapest;
        } else if (isModelled(m_op, sample.choice)) {
            const double low = timeNs(sample.choice).low;
            forced = forced || std::ranges::any_of(m_rules.allowed,
                                                   [&](AlgorithmChoice choice) { return timeNs(choice).high < low; });
        }
        const auto line =
            std::ranges::find_if(m_lines, [choice = sample.choice](const auto& one) { return one.first == choice; });
        if (line != m_lines.end())
            line->second[bytes] = sample;
        else
            m_lines.push_back({sample.choice, {{bytes, sample}}});
    }
    for (const auto& [choice, sizes] : m_lines) m_curves.emplace(choice, curveOf(sizes));
    m_free = !forced && !m_rules.allowed.empty();
    if (m_free) return;
    m_rules = {};
    for (const auto& [choice, sizes] : m_lines) m_rules.allowed.push_back(choice);
}

const CollectivePrice::Sizes* CollectivePrice::sizesOf(AlgorithmChoice choice) const {
    const auto line = std::ranges::find_if(m_lines, [&](const auto& one) { return one.first == choice; });
    return line == m_lines.end() ? nullptr : &line->second;
}

/// Estimates the latency by the formulas, and by the intercept of the line through the ends of what was seen: the value
/// where the sizes differ enough, and no more than it where they do not.
facts::Estimate CollectivePrice::latency(AlgorithmChoice choice, bool any) const {
    const Range hops = knownLatencyHops(choice);
    const facts::Estimate& alpha = m_state->alphaNs;
    facts::Estimate start{hops.low * (any ? alpha.low : alpha.expected), hops.middle() * alpha.expected,
                          hops.high * (any ? alpha.high : alpha.expected)};
    const Sizes* sizes = sizesOf(choice);
    if (sizes == nullptr || sizes->size() < 2) return start;
    const auto& [smallBytes, small] = *sizes->begin();
    const auto& [largeBytes, large] = *sizes->rbegin();
    const double away = std::log(largeBytes / smallBytes) / std::log(SizeCurve::kSmallestRange);
    const double lineError = CostLine::kError * std::min(1.0, away);
    const double intercept =
        std::clamp((small.ns * largeBytes - large.ns * smallBytes) / (largeBytes - smallBytes), 0.0, small.ns);
    const double error = std::hypot(std::hypot(kErrors * small.errorNs, lineError * small.ns) * largeBytes,
                                    std::hypot(kErrors * large.errorNs, lineError * large.ns) * smallBytes) /
                         (largeBytes - smallBytes);
    const double most = std::min(small.ns, intercept + error);
    if (away < 1) return {std::min(start.low, most), std::min(start.expected, most), std::min(start.high, most)};
    return {std::max(0.0, intercept - error), intercept, most};
}

/// Holds a price to this: per byte a choice does not get slower with larger messages, and a larger message takes no
/// less than a smaller one. What kinks take holds for no other size.
facts::Estimate CollectivePrice::concave(facts::Estimate price, const Sizes& sizes, double bytes) const {
    for (const auto& [size, sample] : sizes) {
        if (m_curve.isKink(size)) continue;
        const double least = sample.ns - kErrors * sample.errorNs, most = sample.ns + kErrors * sample.errorNs;
        price.low = std::max(price.low, std::min(price.expected, least * std::min(1.0, bytes / size)));
        price.high = std::min(price.high, std::max(price.expected, most * std::max(1.0, bytes / size)));
    }
    return price;
}

facts::Estimate CollectivePrice::seen(AlgorithmChoice choice, const Sizes& sizes, double bytes) const {
    const auto above = sizes.lower_bound(bytes);
    const auto& [measuredBytes, sample] = nearestOf(sizes, bytes);
    if (above != sizes.end() && above != sizes.begin())
        if (const auto price = m_curves.at(choice).ns(bytes)) return concave(*price, sizes, bytes);
    // Beyond its latency, which leaves the stated link the time for its bytes, the time grows in proportion to them
    // from the nearest size; where one size tells no line, as the formulas have it on a link of this rate, which
    // smaller messages fill less.
    const double more = bytes / measuredBytes, busBytes = measuredBytes * facts::busFactor(m_op, m_ranks);
    LinkModel seenLink = m_state->link;
    seenLink.alphaNs = m_state->alphaNs.expected;
    seenLink.bytesPerNs = m_state->bytesPerNs.expected;
    const Range here = bandwidthShare(seenLink, m_op, choice, measuredBytes),
                there = bandwidthShare(seenLink, m_op, choice, bytes);
    const bool line = sizes.rbegin()->first >= SizeCurve::kSmallestRange * sizes.begin()->first;
    const auto growth = [&](double shareHere, double shareThere) {
        return line ? more : more * shareHere / shareThere;
    };
    const double busNs =
        busBytes / (bandwidthShare(m_state->link, m_op, choice, measuredBytes).high * m_state->link.bytesPerNs);
    const auto timeNs = [&, &price = sample](double startNs, double errors, double times) {
        const double ns = price.ns + errors * price.errorNs;
        const double start = std::clamp(startNs, 0.0, std::max(0.0, isModelled(m_op, choice) ? ns - busNs : ns));
        return start + (ns - start) * times;
    };
    const facts::Estimate start = latency(choice, true);
    facts::Estimate price{0, timeNs(start.expected, 0, growth(here.middle(), there.middle())), 0};
    price.low = price.high = price.expected;
    for (const double times : {growth(here.low, there.low), growth(here.high, there.high)})
        for (const double startNs : {start.low, start.high})
            for (const double errors : {-kErrors, kErrors}) {
                const double ns = timeNs(startNs, errors, times);
                price = {std::min(price.low, ns), price.expected, std::max(price.high, ns)};
            }
    return concave(widened(price, bytes, measuredBytes, sizeError(seenLink, std::min(bytes, measuredBytes))), sizes,
                   bytes);
}

facts::Estimate CollectivePrice::unseen(AlgorithmChoice choice, double bytes) const {
    const Range hops = knownLatencyHops(choice), share = bandwidthOf(choice, bytes);
    const double busBytes = bytes * facts::busFactor(m_op, m_ranks);
    const facts::Estimate &alpha = m_state->alphaNs, &rate = m_state->bytesPerNs;
    const auto time = [&](double alphaNs, double bytesPerNs) {
        return Range{hops.low * alphaNs + busBytes / (share.high * bytesPerNs),
                     hops.high * alphaNs + busBytes / (share.low * bytesPerNs)};
    };
    // What is unexplained slows the one or the other, not both.
    const Range slowLink = time(alpha.low, rate.low), slowLatency = time(alpha.high, m_state->link.bytesPerNs);
    const double error = 1 + modelError(m_state->link, bytes);
    return {std::min(slowLink.low, slowLatency.low) / error, time(alpha.expected, rate.expected).middle(),
            std::max(slowLink.high, slowLatency.high) * error};
}

facts::Estimate CollectivePrice::with(AlgorithmChoice choice, double bytes) const {
    const Sizes* sizes = sizesOf(choice);
    const auto table = m_tables.ofChoice.find(choice);
    if (table != m_tables.ofChoice.end() && covers(table->second, bytes)) {
        const auto price = sizes != nullptr ? byTable(table->second, *sizes, bytes) : table->second.ns(bytes);
        if (price) return *price;
    }
    return sizes != nullptr ? seen(choice, *sizes, bytes) : unseen(choice, bytes);
}

/// True when NCCL may have taken the choice for this size: its choices go from short latency to high bandwidth as
/// messages grow, so that larger messages than a seen one get no choice of less bandwidth than its.
bool CollectivePrice::fits(AlgorithmChoice choice, double bytes) const {
    const auto shareOf = [&](AlgorithmChoice one) {
        return bandwidthShare(m_state->link, m_op, one, kAnySize).middle();
    };
    const auto above = m_sizes.lower_bound(bytes);
    if (above != m_sizes.end() && shareOf(choice) > shareOf(above->second.choice)) return false;
    return above == m_sizes.begin() || shareOf(choice) >= shareOf(std::prev(above)->second.choice);
}

std::vector<AlgorithmChoice> CollectivePrice::fitting(const std::vector<AlgorithmChoice>& choices, double bytes) const {
    std::vector<AlgorithmChoice> result = choices;
    std::erase_if(result, [&](AlgorithmChoice choice) { return !fits(choice, bytes); });
    return result;
}

/// Takes the nearest seen size by what the table has of both; between two seen ones each counts more the nearer it is.
std::optional<facts::Estimate> CollectivePrice::byTable(const SizeCurve& table, const Sizes& sizes, double bytes) {
    const auto there = table.ns(bytes);
    if (!there || !covers(table, bytes)) return std::nullopt;
    const auto from = [&](const std::pair<const double, SizedPrice>& size) -> std::optional<facts::Estimate> {
        const auto here = table.ns(size.first);
        if (!here || !covers(table, size.first)) return std::nullopt;
        const double error = kErrors * size.second.errorNs;
        return facts::Estimate{(size.second.ns - error) * there->low / here->high,
                               size.second.ns * there->expected / here->expected,
                               (size.second.ns + error) * there->high / here->low};
    };
    const auto above = sizes.lower_bound(bytes);
    if (above == sizes.end()) return from(*std::prev(above));
    if (above == sizes.begin()) return from(*above);
    const auto below = std::prev(above);
    const auto one = from(*below), other = from(*above);
    if (!one || !other) return one ? one : other;
    const double part = std::log(bytes / below->first) / std::log(above->first / below->first);
    return facts::Estimate{std::min(one->low, other->low),
                           std::pow(one->expected, 1 - part) * std::pow(other->expected, part),
                           std::max(one->high, other->high)};
}

/// True when the link does as it was stated to, as nearly as lines tell.
bool CollectivePrice::explained() const {
    const bool rate = m_state->bytesPerNs.high * (1 + CostLine::kError) >= m_state->link.bytesPerNs;
    return m_free && rate && m_state->alphaNs.expected <= m_state->link.alphaNs * (1 + CostLine::kError);
}

std::optional<facts::Estimate> CollectivePrice::ns(double bytes) const {
    if (m_sizes.empty() || bytes <= 0) return std::nullopt;
    if (const auto same = m_sizes.find(bytes); same != m_sizes.end()) {
        const SizedPrice& price = same->second;
        return facts::Estimate{std::max(0.0, price.ns - kErrors * price.errorNs), price.ns,
                               price.ns + kErrors * price.errorNs};
    }
    const auto above = m_sizes.lower_bound(bytes);
    const bool between = above != m_sizes.begin() && above != m_sizes.end();
    if (!between || above->first > SizeCurve::kSmallestRange * std::prev(above)->first)
        if (const auto table = byTable(m_tables.ofSetting, m_sizes, bytes)) return table;
    if (!m_state) return m_curve.ns(bytes);
    std::vector<AlgorithmChoice> choices = fitting(m_rules.allowed, bytes);
    if (choices.empty()) choices = {nearestOf(m_sizes, bytes).second.choice};
    const auto chosenBy = [&](AlgorithmChoice choice) { return healthyNs(choice, bytes); };
    const auto first =
        std::ranges::min_element(choices, {}, [&](AlgorithmChoice choice) { return chosenBy(choice).middle(); });
    double atMost = chosenBy(*first).high;
    for (AlgorithmChoice choice : choices) atMost = std::min(atMost, chosenBy(choice).high);
    facts::Estimate price = with(*first, bytes);
    double cheapestHigh = price.high;
    for (AlgorithmChoice choice : choices) {
        if (chosenBy(choice).low > atMost) continue;
        const facts::Estimate other = with(choice, bytes);
        price = hull(price, other);
        cheapestHigh = std::min(cheapestHigh, other.high);
    }
    // On links that do as they were stated to NCCL takes the fastest.
    if (explained()) price.high = std::max(price.expected, cheapestHigh);
    for (AlgorithmChoice choice : fitting(m_rules.mayHave, bytes))
        if (chosenBy(choice).low <= atMost) price.low = std::min(price.low, with(choice, bytes).low);
    // For larger messages NCCL takes another choice only where that gains, and more so where links are slow.
    return m_free ? concave(price, m_sizes, bytes) : price;
}

}  // namespace rankscope::costs
