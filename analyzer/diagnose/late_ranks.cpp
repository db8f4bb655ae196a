// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/late_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/diagnose/calls_together.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/lost_to_rank.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

using job::Analysis;

constexpr double kSeenWhole = 0.995;  // told in whole percent, that is all

// Of the messages that a rank sends. What it sends it has computed before: where a message begins inside of another one
// of the rank, or the moment that one ends, that was beside it (those of a group of calls share a kernel, and begin
// with it). One in ten may be of the warm-up of a schedule that computes beside none.
constexpr double kComputedBeside = 0.1;

/// Whether the rank computes while it sends or receives.
bool computesBeside(const facts::RankSummary& rank) {
    size_t sends = 0, beside = 0;
    int64_t startNs = 0, untilNs = INT64_MIN;  // of the message that ends last of those before
    for (const facts::CommTask& task : rank.communication) {
        if (!task.pointToPoint() || task.step < 0) continue;
        if (task.op == store::Op::send) {
            ++sends;
            beside += task.startNs > startNs && untilNs != INT64_MIN && task.startNs <= untilNs + kStartsWithinNs;
        }
        if (task.endNs <= untilNs) continue;
        startNs = task.startNs;
        untilNs = task.endNs;
    }
    return static_cast<double>(beside) > kComputedBeside * static_cast<double>(sends);
}

/// Who meets whom in the analysed steps.
struct Meetings {
    std::map<int64_t, std::set<int>> collectives;  // members by communicator
    std::map<int, std::set<int>> partners;         // of a rank's messages
    bool computeBeside = false;                    // some of them compute while they send or receive

    explicit Meetings(const Analysis& analysis) {
        for (const store::P2p& message : analysis.facts.pointToPoint) {
            partners[message.srcRank].insert(message.dstRank);
            partners[message.dstRank].insert(message.srcRank);
        }
        for (const facts::RankSummary& rank : analysis.ranks) {
            computeBeside = computeBeside || computesBeside(rank);
            for (const facts::CommTask& task : rank.communication) {
                const facts::Communicator* communicator = analysis.facts.findCommunicator(task.communicatorId);
                if (task.step < 0 || communicator == nullptr || communicator->size < 2) continue;
                if (store::isSynchronizing(task.op) && !collectives.contains(task.communicatorId))
                    collectives[task.communicatorId].insert(communicator->ranks.begin(), communicator->ranks.end());
            }
        }
    }

    /// All whom the rank reaches by messages, itself among them.
    std::set<int> reachedFrom(int rank) const {
        std::set<int> reached{rank};
        std::vector<int> open{rank};
        while (!open.empty()) {
            const auto known = partners.find(open.back());
            open.pop_back();
            if (known == partners.end()) continue;
            for (const int partner : known->second)
                if (reached.insert(partner).second) open.push_back(partner);
        }
        return reached;
    }
};

/// As in late_ranks.h, as indices into analysis.ranks. `rank` is none of them.
struct Peers {
    std::vector<size_t> ranks;
    bool areStages = false;
};

Peers peersOf(const Analysis& analysis, const Meetings& meetings, int rank) {
    std::set<int> among;
    const auto own = meetings.partners.find(rank);
    for (const auto& [id, members] : meetings.collectives) {
        if (!members.contains(rank)) continue;
        // A group of the whole job holds a pipeline's other stages, too.
        const bool mixed = own != meetings.partners.end() &&
                           std::ranges::any_of(members, [&](int member) { return own->second.contains(member); });
        if (!mixed) among.insert(members.begin(), members.end());
    }
    const auto take = [&](Peers& peers) {
        for (size_t r = 0; r < analysis.ranks.size(); ++r)
            if (const int other = analysis.ranks[r].rank;
                other != rank && (meetings.partners.empty() || among.contains(other)))
                peers.ranks.push_back(r);
    };
    Peers peers;
    take(peers);
    if (!peers.ranks.empty() || own == meetings.partners.end() || meetings.computeBeside) return peers;
    among = meetings.reachedFrom(rank);
    peers.areStages = true;
    take(peers);
    return peers;
}

/// Time of the step in which the rank neither waits nor sends, ns; by analysed step, and by rank as in analysis.ranks.
std::vector<std::vector<double>> ownTimes(const Analysis& analysis) {
    std::vector<std::vector<double>> times;
    for (const int step : analysis.steps) {
        std::vector<double>& ofStep = times.emplace_back();
        for (const facts::RankSummary& rank : analysis.ranks) {
            const facts::Attribution* attribution = analysis.attribution(rank, step);
            ofStep.push_back(
                attribution == nullptr ? 0 : static_cast<double>(attribution->stepNs - attribution->exposedCommNs()));
        }
    }
    return times;
}

/// How late a rank is, by analysed step.
struct Lateness {
    std::vector<double> waitedNs, shares, ratios;  // a ratio is 0 where its peers are in communication all the time
    std::vector<double> stepNs;

    /// Late by enough in the middle one of the steps from `first` on, and in so many of them.
    bool isLate(size_t first, double ofSteps) const {
        const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(first);
        const auto often = std::count_if(begin, shares.end(), [](double share) { return share >= kLateInStep; });
        return begin != shares.end() && facts::median({begin, shares.end()}) >= kLateShare &&
               static_cast<double>(often) >= ofSteps * static_cast<double>(shares.end() - begin);
    }

    /// A rank that comes late since `first` costs in no step more than what that takes longer than those before. It may
    /// cost nothing: behind a single stall the others run ahead, and wait for it in each step in the time in which they
    /// idled before. False where what is left is not late.
    bool boundByGrowth(size_t first) {
        const double beforeNs = facts::median({stepNs.begin(), stepNs.begin() + static_cast<std::ptrdiff_t>(first)});
        std::vector<double> left;
        for (size_t s = first; s < stepNs.size(); ++s) {
            waitedNs[s] = std::min(waitedNs[s], std::max(0.0, stepNs[s] - beforeNs));
            left.push_back(waitedNs[s] / stepNs[s]);
        }
        return facts::median(std::move(left)) >= kLateShare;
    }
};

/// Nothing where the rank is missing in a step.
std::optional<Lateness> latenessOf(const Analysis& analysis, const std::vector<std::vector<double>>& times,
                                   size_t index, const std::vector<size_t>& peers) {
    Lateness late;
    for (size_t s = 0; s < times.size(); ++s) {
        std::vector<double> others;
        for (const size_t peer : peers) others.push_back(times[s][peer]);
        const double usualNs = facts::median(others);
        const facts::Attribution* own = analysis.attribution(analysis.ranks[index], analysis.steps[s]);
        if (own == nullptr || own->stepNs <= 0) return std::nullopt;
        late.waitedNs.push_back(std::max(0.0, times[s][index] - usualNs));
        late.shares.push_back((times[s][index] - usualNs) / static_cast<double>(own->stepNs));
        late.ratios.push_back(usualNs > 0 ? times[s][index] / usualNs : 0);
        late.stepNs.push_back(static_cast<double>(own->stepNs));
    }
    return late;
}

/// Nothing for a rank that is not late in nearly all steps, nor in those since a change of its pace. Of what grows step
/// by step chance is no cause, and its first steps are hardly late.
std::optional<LateRank> lateRank(const Analysis& analysis, const std::vector<std::vector<double>>& times, size_t index,
                                 const Peers& peers) {
    if (peers.ranks.empty() || times.empty()) return std::nullopt;
    std::optional<Lateness> known = latenessOf(analysis, times, index, peers.ranks);
    if (!known) return std::nullopt;
    LateRank late;
    late.index = index;
    late.isStage = peers.areStages;
    if (!known->isLate(0, kLateSteps)) {
        late.change = changeOfPace(known->ratios, analysis.ranks.size());
        if (!late.change || !known->isLate(late.change->firstStep, late.change->isGradual ? 0 : kLateSteps.value))
            return std::nullopt;
        late.firstStep = late.change->firstStep;
        // What grows step by step has no steps before it to compare with.
        if (!late.change->isGradual && !known->boundByGrowth(late.firstStep)) return std::nullopt;
    }
    const auto first = static_cast<std::ptrdiff_t>(late.firstStep);
    late.share = facts::median({known->shares.begin() + first, known->shares.end()});
    std::vector<double> ratios;
    std::copy_if(known->ratios.begin() + first, known->ratios.end(), std::back_inserter(ratios),
                 [](double ratio) { return ratio > 0; });
    if (!ratios.empty()) late.ratio = facts::median(std::move(ratios));
    late.waitedNs = known->waitedNs;
    std::fill_n(late.waitedNs.begin(), first, 0.0);
    return late;
}

/// What it was seen to take is no more than what the others lose to it, where that is known.
void setLoss(const Analysis& analysis, const Peers& peers, LateRank& late) {
    late.extraNs = late.waitedNs;
    const std::optional<LostToRank> lost = lostToRank(analysis, late.index, peers.ranks, late.firstStep);
    if (!lost) return;
    for (size_t s = 0; s < late.extraNs.size(); ++s) late.extraNs[s] = std::min(late.extraNs[s], lost->perStepNs[s]);
    late.lossSeen = lost->seen;
    if (lost->share > 0 && lost->share < 1) late.ratio = std::min(late.ratio, 1 / (1 - lost->share));
}

/// Whether they meet in a group that is not of all ranks, or in messages.
bool meetApart(const Analysis& analysis, const Meetings& meetings, int a, int b) {
    const auto partners = meetings.partners.find(a);
    if (partners != meetings.partners.end() && partners->second.contains(b)) return true;
    return std::ranges::any_of(meetings.collectives, [&](const auto& group) {
        return group.second.size() < analysis.ranks.size() && group.second.contains(a) && group.second.contains(b);
    });
}

}  // namespace

std::vector<LateRank> lateRanks(const Analysis& analysis) {
    const Meetings meetings(analysis);
    const auto times = ownTimes(analysis);
    std::vector<LateRank> found;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (auto late = lateRank(analysis, times, r, peersOf(analysis, meetings, analysis.ranks[r].rank)))
            found.push_back(std::move(*late));
    std::vector<LateRank> roots;
    for (const LateRank& late : found) {
        // Whoever waits inside a group for a later member comes late to its other groups.
        const bool follows = std::ranges::any_of(found, [&](const LateRank& other) {
            return other.share >= kMuchLater.value * late.share &&
                   meetApart(analysis, meetings, analysis.ranks[other.index].rank, analysis.ranks[late.index].rank);
        });
        if (!follows) roots.push_back(late);
    }
    for (LateRank& root : roots) setLoss(analysis, peersOf(analysis, meetings, analysis.ranks[root.index].rank), root);
    return roots;
}

std::string whenLate(const Analysis& analysis, const LateRank& late) {
    if (!late.change) return "in each step";
    const int step = analysis.steps[late.firstStep];
    if (late.change->isGradual)
        return fmt::format("more and more from step {} on (growing from {:.2f}x to {:.2f}x)", step, late.change->before,
                           late.change->since);
    return fmt::format("in each step from step {} on ({:.2f}x before)", step, late.change->before);
}

void describeLateness(const Analysis& analysis, const std::vector<LateRank>& late, job::Finding& finding) {
    std::vector<double> extraNs(analysis.steps.size(), 0);
    std::vector<double> shares;
    size_t firstStep = late.front().firstStep;
    double seen = 1;
    for (const LateRank& one : late) {
        finding.ranks.push_back(analysis.ranks[one.index].rank);
        shares.push_back(one.share);
        firstStep = std::min(firstStep, one.firstStep);
        seen = std::min(seen, one.lossSeen.value_or(0));
        for (size_t s = 0; s < extraNs.size(); ++s) extraNs[s] = std::max(extraNs[s], one.extraNs[s]);
    }
    for (const facts::RankSummary& rank : analysis.ranks)
        if (!text::contains(finding.ranks, rank.rank)) finding.affectedRanks.push_back(rank.rank);
    if (firstStep == 0)
        setCost(analysis, extraNs, finding);
    else
        setMeanCost(analysis, facts::mean({extraNs.begin() + static_cast<std::ptrdiff_t>(firstStep), extraNs.end()}),
                    finding, firstStep);
    setTypicalStep(analysis, extraNs, finding.ranks.front(), finding, firstStep);
    const std::string who = text::ranksText(finding.ranks);
    finding.evidence.facts.push_back(
        fmt::format("in each step{} {} {} {} more outside of communication than the {}, the middle one of these",
                    firstStep == 0 ? "" : fmt::format(" from step {} on", analysis.steps[firstStep]), who,
                    finding.ranks.size() == 1 ? "spends" : "spend", text::percentText(facts::median(shares)) + " of it",
                    late.front().isStage ? "other stages" : "peers"));
    finding.evidence.numbers.emplace_back("late_share_of_step", facts::median(shares));
    addLossForRanks(analysis, finding.ranks, who, finding);
    if (seen > 0) {
        finding.evidence.facts.push_back(fmt::format(
            "of that the others lose {} of a step: by so much its lateness grows from one call to the next one, and "
            "what they wait beyond it runs beside work of their own{}",
            text::percentText(finding.severity),
            seen >= kSeenWhole ? std::string()
                               : fmt::format("; seen in {} of its time, and taken to be as much in the rest, in which "
                                             "its peers are ready before their calls show it",
                                             text::percentText(seen))));
        finding.evidence.numbers.emplace_back("loss_seen_share", seen);
    }
    finding.evidence.facts.push_back(fmt::format(
        "no kernels were recorded (light mode): a slow device, more work and a slow host look alike{}; a few steps "
        "without --light tell",
        seen > 0 ? "" : ", and how much of it the others hide behind work of their own is unknown"));
    if (firstStep > 0) tellCostSince(analysis, firstStep, finding);
}

std::string withoutPeersByCalls(const Analysis& analysis) {
    if (!isByCalls(analysis)) return {};
    const Meetings meetings(analysis);
    const bool anyPeers = std::ranges::any_of(analysis.ranks, [&](const facts::RankSummary& rank) {
        return !peersOf(analysis, meetings, rank.rank).ranks.empty();
    });
    if (anyPeers) return {};
    return meetings.computeBeside
               ? "no kernels were recorded: light mode (the stages of a pipeline compute beside their messages, which "
                 "their calls do not tell then)"
               : "no kernels were recorded: light mode (the ranks have nobody to compare them with)";
}

}  // namespace rankscope::diagnose
