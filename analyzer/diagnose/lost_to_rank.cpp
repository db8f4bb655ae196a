// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/lost_to_rank.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/calls_together.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

using job::Analysis;

// Of the rank's time, in which its peers' is known. If all of less than what a finding has to cost were lost, that
// were none yet: the finding would be nothing but what is taken of the rest.
constexpr double kFewestSeen = PriceThresholds::kFloorShare;

/// Of the late rank, at its last collective to which it came when it was ready.
struct Before {
    double lateNs = 0;
    int64_t atNs = 0, endNs = 0;
    int step = -1, place = 0;
    bool known = false;  // the peers came when they were ready, too: so late it was
};

struct InStep {
    double lostNs = 0;
    double seenNs = 0;  // the rank's time in which that was seen
    double unseenNs = 0;
};

/// By step.
std::map<int, InStep> lossesOf(const std::vector<CallTogether>& calls, int rank) {
    const StandingStill standingStill(calls);
    std::map<int, InStep> steps;
    std::optional<Before> before;
    for (const CallTogether& call : calls) {
        const auto own = call.members.find(rank);
        if (own == call.members.end() || !own->second.ready) continue;
        const Arrival& arrival = own->second;
        std::vector<double> others;
        for (const auto& [other, one] : call.members)
            if (other != rank) others.push_back(static_cast<double>(one.atNs));
        const double lateNs = static_cast<double>(arrival.atNs) - facts::median(std::move(others));
        const bool known = call.mostReady(rank);
        if (before && call.step > before->step + 1) before.reset();  // calls of the steps between were left out
        if (before && call.step >= 0) {
            InStep& step = steps[call.step];
            const auto sinceNs = static_cast<double>(arrival.atNs - before->atNs);
            // Where nothing tells, a step begins when all that the one before it has sent is there.
            const std::optional<bool> told =
                before->known ? standingStill.isBetween(before->place, call.place) : std::nullopt;
            const bool anew = told.value_or(call.place == 0);
            if (known && anew) {
                step.lostNs += lateNs;
                step.seenNs += static_cast<double>(arrival.atNs - before->endNs);
            } else if (known && before->known) {
                step.lostNs += lateNs - before->lateNs;
                step.seenNs += sinceNs;
            } else {
                step.unseenNs += sinceNs;
            }
        }
        before = {lateNs, arrival.atNs, arrival.endNs, call.step, call.place, known};
    }
    return steps;
}

std::optional<LostToRank> lostIn(const Analysis& analysis, int64_t communicator, int rank, size_t firstStep) {
    const std::map<int, InStep> steps = lossesOf(callsTogether(analysis, communicator), rank);
    const auto of = [&](int step) {
        const auto found = steps.find(step);
        return found == steps.end() ? InStep() : found->second;
    };
    InStep all;
    for (size_t s = firstStep; s < analysis.steps.size(); ++s) {
        const InStep step = of(analysis.steps[s]);
        all.lostNs += step.lostNs;
        all.seenNs += step.seenNs;
        all.unseenNs += step.unseenNs;
    }
    const double seen = all.seenNs > 0 ? all.seenNs / (all.seenNs + all.unseenNs) : 0;
    if (seen <= kFewestSeen) return std::nullopt;
    LostToRank lost{std::vector<double>(firstStep, 0), all.lostNs / all.seenNs, seen};
    for (size_t s = firstStep; s < analysis.steps.size(); ++s) {
        const InStep step = of(analysis.steps[s]);
        lost.perStepNs.push_back(std::max(0.0, step.lostNs + lost.share * step.unseenNs));
    }
    return lost;
}

}  // namespace

std::optional<LostToRank> lostToRank(const Analysis& analysis, size_t rank, const std::vector<size_t>& peers,
                                     size_t firstStep) {
    const int own = analysis.ranks[rank].rank;
    std::set<int> among{own};
    for (const size_t peer : peers) among.insert(analysis.ranks[peer].rank);
    std::optional<LostToRank> most;
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        if (std::ranges::find(communicator.ranks, own) == communicator.ranks.end() ||
            !std::ranges::all_of(communicator.ranks, [&](int member) { return among.contains(member); }))
            continue;
        std::optional<LostToRank> lost = lostIn(analysis, id, own, firstStep);
        // What is lost inside a small group the rank comes late with to the larger one: it is the same loss.
        if (lost && (!most || facts::median(lost->perStepNs) > facts::median(most->perStepNs))) most = std::move(lost);
    }
    return most;
}

}  // namespace rankscope::diagnose
