// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/clock_offsets.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace rankscope::collector {

namespace {

/// Fewer common collectives may keep their distance by chance.
constexpr size_t kFewestSamples = 4;
/// Ends of one collective on two ranks: within 7 us on eight V100 (DLRM), 49 us on eight A100 whose hosts stand still
/// now and then (Megatron). Those of other collectives move against each other by what the ranks do meanwhile.
constexpr int64_t kMostScatterNs = 100'000;
/// What ends differ by on one clock, in the median, is the transfer's skew: no offset.
constexpr int64_t kSkewNs = 15'000;
/// A side whose fastest kernel takes so much longer than the other side's waits for it.
constexpr double kWaitsTimes = 1.5;
constexpr int64_t kWaitsNs = 20'000;
/// One in four collectives must show that: the same side need not be late each time, and often nobody is.
constexpr double kWaitingShare = 0.25;
/// How many times longer the one side's fastest kernel takes must vary by this factor from collective to collective:
/// lateness does, while groups of their own with larger messages, or slower links, take as many times longer each time.
constexpr double kWaitingVaries = 2;

/// Fewer ends may lie on a line by chance.
constexpr size_t kFewestForDrift = 8;
/// Quartz clocks are good to 100 ppm, and two may run apart by twice as much.
constexpr double kMostDrift = 200e-6;

/// Calls that may be of one communicator: of a told group, or of one stream without any.
using Key = std::pair<uint64_t, int32_t>;
using Calls = std::vector<const RankCalls::Call*>;

std::map<Key, Calls> callsOf(const RankCalls& rank) {
    std::map<Key, Calls> calls;
    for (const RankCalls::Call& call : rank.calls)
        calls[{call.group, call.group != 0 ? 0 : call.stream}].push_back(&call);
    return calls;
}

bool leavesTogether(const RankCalls::Call& call) {
    return store::isSynchronizing(call.op);  // what is called SendRecv need not be an all-to-all
}

/// Pairs of the same calls of two ranks; none where they do not agree in number and order.
std::vector<std::pair<const RankCalls::Call*, const RankCalls::Call*>> pairsOf(const std::map<Key, Calls>& first,
                                                                               const std::map<Key, Calls>& second) {
    std::vector<std::pair<const RankCalls::Call*, const RankCalls::Call*>> pairs;
    for (const auto& [key, calls] : first) {
        const auto others = second.find(key);
        if (others == second.end() || others->second.size() != calls.size()) continue;
        const bool agree = std::equal(
            calls.begin(), calls.end(), others->second.begin(), [](const RankCalls::Call* a, const RankCalls::Call* b) {
                return a->maybeSameAs(*b) &&
                       (!a->frameworkSeq || !b->frameworkSeq || *a->frameworkSeq == *b->frameworkSeq);
            });
        if (!agree) continue;
        for (size_t i = 0; i < calls.size(); ++i)
            if (leavesTogether(*calls[i])) pairs.emplace_back(calls[i], others->second[i]);
    }
    return pairs;
}

int64_t quantile(std::vector<int64_t> values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// How far the second rank is ahead; samples 0 where nothing tells.
ClockOffset between(const std::map<Key, Calls>& first, const std::map<Key, Calls>& second, int64_t anchorNs) {
    std::vector<std::pair<int64_t, int64_t>> points;
    std::vector<int64_t> distances;
    for (const auto& [a, b] : pairsOf(first, second)) {
        points.emplace_back(b->endNs, b->endNs - a->endNs);
        distances.push_back(b->endNs - a->endNs);
    }
    if (distances.size() < kFewestSamples) return {};
    ClockOffset offset;
    offset.line = {quantile(distances, 0.5), 0, anchorNs};
    for (int64_t& distance : distances) distance = std::llabs(distance - offset.line.aheadNs);
    offset.boundNs = quantile(distances, 0.8);
    offset.samples = distances.size();
    if (offset.boundNs > kMostScatterNs) {
        const auto fitted = fitClockLine(std::move(points), anchorNs, kFewestForDrift);
        if (!fitted || fitted->boundNs > kMostScatterNs || std::abs(fitted->line.drift) > kMostDrift) return {};
        offset.line = fitted->line;
        offset.boundNs = fitted->boundNs;
    } else if (std::llabs(offset.line.aheadNs) <= std::max(kSkewNs, 2 * offset.boundNs)) {
        offset.line.aheadNs = 0;
    }
    return offset;
}

/// True where ranks that agree with the first one wait for others that do not, or these for them, often enough: groups
/// of their own have a last member each.
bool oneSideWaits(const std::vector<std::map<Key, Calls>>& calls, const std::vector<ClockOffset>& offsets) {
    struct Fastest {
        int64_t here = std::numeric_limits<int64_t>::max(), there = std::numeric_limits<int64_t>::max();
    };
    std::map<const RankCalls::Call*, Fastest> fastest;  // by the first rank's call
    for (size_t i = 0; i < calls.size(); ++i) {
        if (offsets[i].samples == 0) continue;
        for (const auto& [first, own] : pairsOf(calls.front(), calls[i])) {
            int64_t& side = offsets[i].line.isSame() ? fastest[first].here : fastest[first].there;
            side = std::min(side, own->endNs - own->startNs);
        }
    }
    std::vector<int64_t> times;  // thousandths of the one side's fastest kernel over the other's, of those that wait
    for (const auto& [call, of] : fastest) {
        const auto [less, more] = std::minmax(of.here, of.there);
        if (more == std::numeric_limits<int64_t>::max()) continue;
        if (static_cast<double>(more) > kWaitsTimes * static_cast<double>(less) && more - less > kWaitsNs)
            times.push_back(1000 * std::max<int64_t>(1, of.here) / std::max<int64_t>(1, of.there));
    }
    if (times.empty() || static_cast<double>(times.size()) < kWaitingShare * static_cast<double>(fastest.size()))
        return false;
    return static_cast<double>(quantile(times, 0.9)) >=
           kWaitingVaries * static_cast<double>(std::max<int64_t>(1, quantile(times, 0.1)));
}

/// By the groups that the traces tell: each rank against the lowest one that groups join it to, through others where
/// need be. No samples where no group with another clock in it is told.
std::vector<ClockOffset> byToldGroups(const std::vector<std::map<Key, Calls>>& calls, int64_t anchorNs) {
    std::map<Key, std::vector<size_t>> members;
    std::vector<std::map<Key, Calls>> told(calls.size());
    for (size_t rank = 0; rank < calls.size(); ++rank)
        for (const auto& [key, own] : calls[rank])
            if (key.first != 0) {
                members[key].push_back(rank);
                told[rank].insert({key, own});
            }
    std::vector<std::vector<std::pair<size_t, ClockOffset>>> ties(calls.size());  // the other one, and how it is ahead
    for (const auto& [key, ranks] : members)
        for (const size_t other : ranks) {
            if (other == ranks.front()) continue;
            const ClockOffset offset = between(told[ranks.front()], told[other], anchorNs);
            if (offset.samples == 0) continue;
            ties[ranks.front()].emplace_back(other, offset);
            ties[other].emplace_back(ranks.front(),
                                     ClockOffset{offset.line.reversed(), offset.boundNs, offset.samples});
        }
    std::vector<ClockOffset> offsets(calls.size());
    std::vector<bool> isTied(calls.size());
    for (size_t root = 0; root < calls.size(); ++root) {
        if (isTied[root] || ties[root].empty()) continue;
        isTied[root] = true;
        offsets[root].line.anchorNs = anchorNs;
        offsets[root].samples = 1;
        offsets[root].against = root;
        std::vector<size_t> next{root};
        while (!next.empty()) {
            const size_t from = next.back();
            next.pop_back();
            for (const auto& [to, tie] : ties[from]) {
                if (isTied[to]) continue;
                isTied[to] = true;
                offsets[to] = {tie.line.then(offsets[from].line), std::max(offsets[from].boundNs, tie.boundNs),
                               tie.samples, root};
                next.push_back(to);
            }
        }
    }
    return offsets;
}

/// From the first call of all to the last.
std::pair<int64_t, int64_t> spanOf(const std::vector<RankCalls>& ranks) {
    int64_t firstNs = std::numeric_limits<int64_t>::max(), lastNs = std::numeric_limits<int64_t>::min();
    for (const RankCalls& rank : ranks)
        for (const RankCalls::Call& call : rank.calls) {
            firstNs = std::min(firstNs, call.endNs);
            lastNs = std::max(lastNs, call.endNs);
        }
    return {firstNs, lastNs};
}

/// True where two clocks are further apart, at the beginning or the end, than what makes ends of one clock differ.
bool differ(const ClockOffset& a, const ClockOffset& b, std::pair<int64_t, int64_t> span) {
    const int64_t leastNs = std::max(kSkewNs, 2 * std::max(a.boundNs, b.boundNs));
    return std::llabs(a.line.aheadAt(span.first) - b.line.aheadAt(span.first)) > leastNs ||
           std::llabs(a.line.aheadAt(span.second) - b.line.aheadAt(span.second)) > leastNs;
}

/// Of the ranks of a host those whose clocks are one; ranks of which nothing tells are with the first of them.
std::vector<std::vector<size_t>> machinesOf(const std::vector<size_t>& members, const std::vector<ClockOffset>& offsets,
                                            std::pair<int64_t, int64_t> span) {
    std::vector<std::vector<size_t>> machines;
    std::vector<size_t> untold;
    for (const size_t member : members) {
        if (offsets[member].samples == 0) {
            untold.push_back(member);
            continue;
        }
        const auto home = std::ranges::find_if(machines, [&](const std::vector<size_t>& machine) {
            return !differ(offsets[machine.front()], offsets[member], span);
        });
        if (home != machines.end()) {
            home->push_back(member);
        } else {
            machines.push_back({member});
        }
    }
    if (machines.empty()) machines.emplace_back();
    machines.front().insert(machines.front().end(), untold.begin(), untold.end());
    return machines;
}

/// What most ranks of a machine say of its clock.
ClockOffset commonOffset(const std::vector<size_t>& members, const std::vector<ClockOffset>& offsets) {
    std::vector<size_t> told;
    ClockOffset common;
    std::vector<int64_t> bounds;
    for (const size_t member : members) {
        if (offsets[member].samples == 0) continue;
        told.push_back(member);
        bounds.push_back(offsets[member].boundNs);
        common.samples += offsets[member].samples;
    }
    if (told.empty()) return common;
    std::ranges::sort(told, {}, [&](size_t member) { return offsets[member].line.aheadNs; });
    common.line = offsets[told[(told.size() - 1) / 2]].line;
    common.boundNs = quantile(bounds, 0.5);
    return common;
}

}  // namespace

std::vector<ClockOffset> clockOffsets(const std::vector<RankCalls>& ranks, const std::vector<std::string>& hosts) {
    std::vector<ClockOffset> offsets(ranks.size());
    if (ranks.size() < 2) return offsets;
    std::vector<std::map<Key, Calls>> calls;
    for (const RankCalls& rank : ranks) calls.push_back(callsOf(rank));
    const bool told = std::ranges::all_of(hosts, [](const std::string& host) { return !host.empty(); });
    const std::pair<int64_t, int64_t> span = spanOf(ranks);
    offsets = byToldGroups(calls, span.first);
    const bool byGroups = std::ranges::any_of(offsets, [](const ClockOffset& offset) { return offset.samples > 0; });
    if (!byGroups) {
        offsets.front().samples = ranks.front().calls.size();
        offsets.front().line.anchorNs = span.first;
        for (size_t i = 1; i < ranks.size(); ++i) offsets[i] = between(calls.front(), calls[i], span.first);
    }
    const bool believed = byGroups || oneSideWaits(calls, offsets);
    if (!told) {
        if (believed) return offsets;
        for (ClockOffset& offset : offsets) {
            offset.doubted = offset.line.drift != 0;
            if (!offset.doubted) offset = {};
        }
        return offsets;
    }
    // The ranks of a machine have one clock. Where a name has several machines, only clocks that are believed tell it.
    std::map<std::string, std::vector<size_t>> ranksOf;
    for (size_t i = 0; i < ranks.size(); ++i) ranksOf[hosts[i]].push_back(i);
    const std::vector<ClockOffset> own = offsets;
    for (const auto& [host, members] : ranksOf) {
        const auto machines = believed ? machinesOf(members, own, span) : std::vector<std::vector<size_t>>{members};
        for (size_t machine = 0; machine < machines.size(); ++machine) {
            const bool isFirst =
                host == hosts.front() && std::ranges::find(machines[machine], size_t{0}) != machines[machine].end();
            ClockOffset of = isFirst ? ClockOffset{} : commonOffset(machines[machine], own);
            of.machine = machine;
            for (const size_t member : machines[machine]) offsets[member] = of;
        }
    }
    return offsets;
}

}  // namespace rankscope::collector
