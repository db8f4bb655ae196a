// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/calls_together.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

constexpr double kNoiseNs = 1'000;      // device clocks of one host agree to about a microsecond
constexpr double kGoesOn = 0.5;         // the correlation is 0 or 1, and what chance makes of that
constexpr size_t kFewestPairs = 20;     // of neighbouring arrivals: its error is then 0.2
constexpr size_t kFewestOfOneRank = 3;  // else taking out what it always differs by leaves nothing

}  // namespace

bool CallTogether::mostReady(int except) const {
    size_t ready = 0, counted = 0;
    for (const auto& [rank, arrival] : members) {
        if (rank == except) continue;
        ++counted;
        ready += arrival.ready ? 1 : 0;
    }
    return 2 * ready > counted;
}

bool CallTogether::keepsAll() const {
    if (store::isSynchronizing(op)) return true;
    int64_t lastNs = INT64_MIN, firstEndNs = INT64_MAX;
    for (const auto& [rank, arrival] : members) {
        lastNs = std::max(lastNs, arrival.atNs);
        firstEndNs = std::min(firstEndNs, arrival.endNs);
    }
    return firstEndNs >= lastNs;
}

std::vector<CallTogether> callsTogether(const job::Analysis& analysis, int64_t communicator) {
    std::vector<CallTogether> calls;
    std::unordered_map<int64_t, size_t> indices;  // by id
    for (const store::Collective& collective : analysis.facts.collectives) {
        if (collective.communicatorId != communicator) continue;
        indices[collective.id] = calls.size();
        calls.push_back({collective.id, collective.op, collective.step ? *collective.step : -1, 0, {}});
    }
    for (const store::CollectiveMember& member : analysis.facts.members)
        if (const auto call = indices.find(member.collectiveId);
            call != indices.end() && member.arrivalNs && member.endNs)
            calls[call->second].members[member.rank] = {*member.arrivalNs, *member.endNs, true};
    std::erase_if(calls, [](const CallTogether& call) { return call.members.size() < 2 || !call.keepsAll(); });
    int step = -1;  // one between two steps belongs to the step before it
    for (CallTogether& call : calls) call.step = step = std::max(step, call.step);
    std::map<int, int> places;        // by step
    std::map<int, int64_t> previous;  // end, by rank
    for (CallTogether& call : calls) {
        call.place = places[call.step]++;
        for (auto& [rank, arrival] : call.members) {
            const auto before = previous.find(rank);
            arrival.ready = before == previous.end() || arrival.atNs - before->second > kStartsWithinNs;
            previous[rank] = arrival.endNs;
        }
    }
    return calls;
}

StandingStill::StandingStill(const std::vector<CallTogether>& calls) {
    std::map<std::pair<int, int>, std::map<int, Pairs>> pairs;
    std::map<int, std::pair<int, double>> before;  // by rank: place and deviation, where it was last ready
    for (const CallTogether& call : calls) {
        std::vector<double> ready;
        for (const auto& [rank, arrival] : call.members)
            if (arrival.ready) ready.push_back(static_cast<double>(arrival.atNs));
        const double mean = facts::mean(ready);
        for (const auto& [rank, arrival] : call.members) {
            if (!arrival.ready) continue;
            if (ready.size() < 2) {  // alone it deviates from nobody
                before.erase(rank);
                continue;
            }
            const double deviation = static_cast<double>(arrival.atNs) - mean;
            if (const auto last = before.find(rank); last != before.end() && call.step >= 0)
                pairs[{last->second.first, call.place}][rank].emplace_back(last->second.second, deviation);
            before[rank] = {call.place, deviation};
        }
    }
    for (const auto& [places, byRank] : pairs) {
        Sums& sums = m_sums[places];
        for (const auto& [rank, ofRank] : byRank) sums.add(ofRank);
        m_all.add(sums);
    }
}

std::optional<bool> StandingStill::isBetween(int from, int to) const {
    if (const auto sums = m_sums.find({from, to}); sums != m_sums.end() && sums->second.tells())
        return sums->second.correlation() < kGoesOn;
    return m_all.tells() ? std::optional(m_all.correlation() < kGoesOn) : std::nullopt;
}

void StandingStill::Sums::add(const Pairs& ofOneRank) {
    if (ofOneRank.size() < kFewestOfOneRank) return;
    double before = 0, after = 0;
    for (const auto& [x, y] : ofOneRank) {
        before += x / static_cast<double>(ofOneRank.size());
        after += y / static_cast<double>(ofOneRank.size());
    }
    for (const auto& [x, y] : ofOneRank) {
        products += (x - before) * (y - after);
        squares += (x - before) * (x - before);
    }
    count += ofOneRank.size();
}

void StandingStill::Sums::add(const Sums& other) {
    products += other.products;
    squares += other.squares;
    count += other.count;
}

bool StandingStill::Sums::tells() const {
    return count >= kFewestPairs && squares > static_cast<double>(count) * kNoiseNs * kNoiseNs;
}

}  // namespace rankscope::diagnose
