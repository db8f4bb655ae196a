// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/message_speed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/costs/nccl_formulas.h"
#include "collector/store/vocabulary.h"

namespace rankscope::compare {
namespace {

costs::AlgorithmChoice choiceOf(const TrafficSummary& traffic) {
    return {store::fromText<store::Algorithm>(traffic.algorithm), store::fromText<store::Protocol>(traffic.protocol)};
}

bool otherWay(const TrafficSummary& before, const TrafficSummary& after) {
    const auto differ = [](const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; };
    return differ(before.algorithm, after.algorithm) || differ(before.protocol, after.protocol);
}

/// How many times as long a message's start-up may be by `to` as by `from`. Infinite where no formula knows.
double startupRatio(const std::string& opName, int ranks, costs::AlgorithmChoice from, costs::AlgorithmChoice to) {
    const auto op = store::fromText<store::Op>(opName);
    if (!costs::isModelled(op, from) || !costs::isModelled(op, to)) return std::numeric_limits<double>::infinity();
    return costs::hopsOf(op, ranks, to.algorithm).high * costs::startupShare(to.protocol).high /
           (costs::hopsOf(op, ranks, from.algorithm).low * costs::startupShare(from.protocol).low);
}

double nsEach(const TrafficSummary& traffic) {
    return traffic.transferNs / traffic.count;
}

/// Longest start-up that a message like `like` can have on this side, ns: all of the shortest message of its operation
/// among as many ranks, by whatever way.
double longestStartupNs(const SideMeans& side, const TrafficSummary& like) {
    double ns = nsEach(like);
    for (const auto& [key, other] : side.traffic)
        if (other.op == like.op && other.ranks == like.ranks && other.count > 0 && other.transferNs > 0)
            ns = std::min(ns, nsEach(other) * startupRatio(like.op, like.ranks, choiceOf(other), choiceOf(like)));
    return ns;
}

/// How many times as long a message may take by the other way, at most, on an unchanged link, if `startup` (0 to 1) of
/// its time was start-up: that part by the start-ups of both ways, the bytes by what share of the link both reach.
/// Infinite where no formula knows.
double mostByWay(const TrafficSummary& before, const TrafficSummary& after, double startup) {
    const costs::AlgorithmChoice from = choiceOf(before), to = choiceOf(after);
    const double startups = startupRatio(after.op, after.ranks, from, to);
    if (std::isinf(startups)) return startups;
    const double bytes = costs::bandwidthShare(from).high / costs::bandwidthShare(to).low;
    return startups > bytes ? startup * startups + (1 - startup) * bytes : bytes;
}

void add(const TrafficSummary& before, const TrafficSummary& after, double startup, MessageSpeed& speed) {
    if (before.count <= 0 || after.count <= 0 || before.transferNs <= 0 || after.transferNs <= 0) return;
    double growth = after.transferNs / after.count / (before.transferNs / before.count);
    if (before.bytes > 0 && after.bytes > 0)
        growth = std::min(growth, after.transferNs / after.bytes / (before.transferNs / before.bytes));
    const double addedNs = after.transferNs * (1 - 1 / growth);
    speed.newNs += after.transferNs;
    speed.addedNs += addedNs;
    if (!otherWay(before, after)) {
        speed.sameWayGrowth = std::max(speed.sameWayGrowth, growth - 1);
        return;
    }
    const double wayNs = std::min(addedNs, after.transferNs / growth * (mostByWay(before, after, startup) - 1));
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
        if (const auto before = base.traffic.find(key); before != base.traffic.end() && before->second.count > 0 &&
                                                        before->second.transferNs > 0 &&
                                                        trafficName(after.use, after.op) == traffic)
            add(before->second, after, longestStartupNs(base, before->second) / nsEach(before->second), speed);
    if (speed.newNs > 0) return speed;
    const auto before = byUse(base), after = byUse(now);
    const auto a = before.find(traffic), b = after.find(traffic);
    return a == before.end() || b == after.end() ? speed : compareSpeed(a->second, b->second);
}

MessageSpeed compareSpeed(const TrafficSummary& before, const TrafficSummary& after) {
    MessageSpeed speed;
    add(before, after, 1, speed);  // how short a message can be is not to be seen of a sum
    return speed;
}

}  // namespace rankscope::compare
