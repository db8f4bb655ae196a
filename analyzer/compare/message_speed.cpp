// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/message_speed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/timeline/nccl_formulas.h"
#include "collector/store/vocabulary.h"

namespace rankscope::analyzer {
namespace {

AlgorithmChoice choiceOf(const TrafficSummary& traffic) { return {store::fromText<store::Algorithm>(traffic.algorithm), store::fromText<store::Protocol>(traffic.protocol)}; }

bool otherWay(const TrafficSummary& before, const TrafficSummary& after) {
    const auto differ = [](const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; };
    return differ(before.algorithm, after.algorithm) || differ(before.protocol, after.protocol);
}

/// How many times as long a message may take by the other way, at most, on an unchanged link: by its start-ups, or by its bytes. Infinite where no formula knows.
double mostByWay(const TrafficSummary& before, const TrafficSummary& after) {
    const auto op = store::fromText<store::Op>(after.op);
    const AlgorithmChoice from = choiceOf(before), to = choiceOf(after);
    if (!isModelled(op, from) || !isModelled(op, to)) return std::numeric_limits<double>::infinity();
    const double startups = hopsOf(op, after.ranks, to.algorithm).high * startupShare(to.protocol).high / (hopsOf(op, after.ranks, from.algorithm).low * startupShare(from.protocol).low);
    return std::max(startups, bandwidthShare(from).high / bandwidthShare(to).low);
}

void add(const TrafficSummary& before, const TrafficSummary& after, MessageSpeed& speed) {
    if (before.count <= 0 || after.count <= 0 || before.transferNs <= 0 || after.transferNs <= 0) return;
    double growth = after.transferNs / after.count / (before.transferNs / before.count);
    if (before.bytes > 0 && after.bytes > 0) growth = std::min(growth, after.transferNs / after.bytes / (before.transferNs / before.bytes));
    const double addedNs = after.transferNs * (1 - 1 / growth);
    speed.newNs += after.transferNs;
    speed.addedNs += addedNs;
    if (!otherWay(before, after)) {
        speed.sameWayGrowth = std::max(speed.sameWayGrowth, growth - 1);
        return;
    }
    const double wayNs = std::min(addedNs, after.transferNs / growth * (mostByWay(before, after) - 1));
    if (speed.otherWayNs == 0 || wayNs > speed.otherWayNs) {
        speed.before = before;
        speed.after = after;
    }
    speed.otherWayNs += std::max(0.0, wayNs);
}

}  // namespace

MessageSpeed compareSpeed(const SideMeans& base, const SideMeans& now, const std::string& traffic) {
    MessageSpeed speed;
    for (const auto& [key, after] : now.traffic)
        if (const auto before = base.traffic.find(key); before != base.traffic.end() && trafficName(after.use, after.op) == traffic) add(before->second, after, speed);
    if (speed.newNs > 0) return speed;
    const auto before = byUse(base), after = byUse(now);
    const auto a = before.find(traffic), b = after.find(traffic);
    return a == before.end() || b == after.end() ? speed : compareSpeed(a->second, b->second);
}

MessageSpeed compareSpeed(const TrafficSummary& before, const TrafficSummary& after) {
    MessageSpeed speed;
    add(before, after, speed);
    return speed;
}

}  // namespace rankscope::analyzer
