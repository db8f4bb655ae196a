// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/late_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/lost_to_rank.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

using job::Analysis;

/// Who meets whom in the analysed steps.
struct Meetings {
    std::map<int64_t, std::set<int>> collectives;  // members by communicator
    std::map<int, std::set<int>> partners;         // of a rank's messages

    explicit Meetings(const Analysis& analysis) {
        for (const store::P2p& message : analysis.facts.pointToPoint) {
            partners[message.srcRank].insert(message.dstRank);
            partners[message.dstRank].insert(message.srcRank);
        }
        for (const facts::RankSummary& rank : analysis.ranks)
            for (const facts::CommTask& task : rank.communication) {
                const facts::Communicator* communicator = analysis.facts.findCommunicator(task.communicatorId);
                if (task.step < 0 || communicator == nullptr || communicator->size < 2) continue;
                if (store::isSynchronizing(task.op) && !collectives.contains(task.communicatorId))
                    collectives[task.communicatorId].insert(communicator->ranks.begin(), communicator->ranks.end());
            }
    }
};

/// As in late_ranks.h, as indices into analysis.ranks. `rank` is none of them.
std::vector<size_t> peersOf(const Analysis& analysis, const Meetings& meetings, int rank) {
    std::set<int> among;
    const auto own = meetings.partners.find(rank);
    for (const auto& [id, members] : meetings.collectives) {
        if (!members.contains(rank)) continue;
        // A group of the whole job holds a pipeline's other stages, too.
        const bool mixed = own != meetings.partners.end() &&
                           std::ranges::any_of(members, [&](int member) { return own->second.contains(member); });
        if (!mixed) among.insert(members.begin(), members.end());
    }
    std::vector<size_t> peers;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        if (const int other = analysis.ranks[r].rank;
            other != rank && (meetings.partners.empty() || among.contains(other)))
            peers.push_back(r);
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

/// Nothing for a rank that is not late in nearly all steps.
std::optional<LateRank> lateRank(const Analysis& analysis, const std::vector<std::vector<double>>& times, size_t index,
                                 const std::vector<size_t>& peers) {
    if (peers.empty() || times.empty()) return std::nullopt;
    LateRank late{.index = index};
    std::vector<double> shares, ratios;
    size_t often = 0;
    for (size_t s = 0; s < times.size(); ++s) {
        std::vector<double> others;
        for (const size_t peer : peers) others.push_back(times[s][peer]);
        const double usualNs = facts::median(others);
        const facts::Attribution* own = analysis.attribution(analysis.ranks[index], analysis.steps[s]);
        if (own == nullptr || own->stepNs <= 0) continue;
        late.waitedNs.push_back(std::max(0.0, times[s][index] - usualNs));
        shares.push_back((times[s][index] - usualNs) / static_cast<double>(own->stepNs));
        if (usualNs > 0) ratios.push_back(times[s][index] / usualNs);
        often += shares.back() >= kLateInStep;
    }
    if (shares.empty() || static_cast<double>(often) < kLateSteps * static_cast<double>(shares.size()))
        return std::nullopt;
    late.share = facts::median(shares);
    if (!ratios.empty()) late.ratio = facts::median(ratios);
    return late.share >= kLateShare && late.waitedNs.size() == times.size() ? std::optional(std::move(late))
                                                                            : std::nullopt;
}

/// What it was seen to take is no more than what the others lose to it, where that is known.
void setLoss(const Analysis& analysis, const std::vector<size_t>& peers, LateRank& late) {
    late.extraNs = late.waitedNs;
    const std::optional<LostToRank> lost = lostToRank(analysis, late.index, peers);
    if (!lost) return;
    for (size_t s = 0; s < late.extraNs.size(); ++s) late.extraNs[s] = std::min(late.extraNs[s], lost->perStepNs[s]);
    late.lossKnown = true;
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

bool isLight(const Analysis& analysis) {
    return !analysis.facts.text("light").empty();
}

bool isByCalls(const Analysis& analysis) {
    return isLight(analysis) &&
           std::ranges::any_of(analysis.ranks, [](const facts::RankSummary& rank) { return rank.kernels.empty(); });
}

bool isSummarised(const Analysis& analysis) {
    return isLight(analysis) && !isByCalls(analysis);
}

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

void describeLateness(const Analysis& analysis, const std::vector<LateRank>& late, job::Finding& finding) {
    std::vector<double> extraNs(analysis.steps.size(), 0);
    std::vector<double> shares;
    for (const LateRank& one : late) {
        finding.ranks.push_back(analysis.ranks[one.index].rank);
        shares.push_back(one.share);
        for (size_t s = 0; s < extraNs.size(); ++s) extraNs[s] = std::max(extraNs[s], one.extraNs[s]);
    }
    for (const facts::RankSummary& rank : analysis.ranks)
        if (!text::contains(finding.ranks, rank.rank)) finding.affectedRanks.push_back(rank.rank);
    setCost(analysis, extraNs, finding);
    setTypicalStep(analysis, extraNs, finding.ranks.front(), finding);
    finding.evidence.facts.push_back(
        fmt::format("in each step {} {} {} more outside of communication than the peers, the middle one of these",
                    text::ranksText(finding.ranks), finding.ranks.size() == 1 ? "spends" : "spend",
                    text::percentText(facts::median(shares)) + " of it"));
    finding.evidence.numbers.emplace_back("late_share_of_step", facts::median(shares));
    if (const double lastShare = analysis.delays.shareFor(finding.ranks); lastShare > 0) {
        finding.evidence.facts.push_back(
            fmt::format("{:.0f} % of what the others lose to late ranks, waiting and transfer, is for {}",
                        100 * lastShare, text::ranksText(finding.ranks)));
        finding.evidence.numbers.emplace_back("wait_share_for_rank", lastShare);
    }
    const bool known = std::ranges::all_of(late, [](const LateRank& one) { return one.lossKnown; });
    if (known)
        finding.evidence.facts.push_back(fmt::format(
            "of that the others lose {} of a step: by so much its lateness grows from one call to the next one, and "
            "what they wait beyond it runs beside work of their own",
            text::percentText(finding.severity)));
    finding.evidence.facts.push_back(fmt::format(
        "no kernels were recorded (light mode): a slow device, more work and a slow host look alike{}; a few steps "
        "without --light tell",
        known ? "" : ", and how much of it the others hide behind work of their own is unknown"));
}

std::string withoutPeersByCalls(const Analysis& analysis) {
    if (!isByCalls(analysis)) return {};
    const Meetings meetings(analysis);
    const bool anyPeers = std::ranges::any_of(analysis.ranks, [&](const facts::RankSummary& rank) {
        return !peersOf(analysis, meetings, rank.rank).empty();
    });
    return anyPeers ? std::string() : "no kernels were recorded: light mode (the stages of a pipeline have no peers)";
}

}  // namespace rankscope::diagnose
