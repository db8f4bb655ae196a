// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/link_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ranges>
#include <set>

#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::job {
namespace {

bool needs(const LinkSuspect& suspect, const LinkProbe& probe) {
    if (suspect.betweenNodes && !probe.betweenNodes) return false;
    if (suspect.pair) {
        const bool back = suspect.bothWays && probe.ranks.size() == 2 && probe.ranks[0] == suspect.ranks[1] &&
                          probe.ranks[1] == suspect.ranks[0];
        return probe.pair && (probe.ranks == suspect.ranks || back);
    }
    return std::ranges::any_of(suspect.ranks, [&](int rank) { return probe.touches(rank); });
}

/// Everything that can be behind a slow probe: ranks, ranks' ways to other nodes, nodes' ways to other nodes, pairs.
std::vector<LinkSuspect> allSuspects(const Analysis& analysis, const std::vector<LinkProbe>& probes) {
    std::vector<LinkSuspect> suspects;
    std::map<int64_t, std::vector<int>> byHost;
    for (const facts::RankFacts& rank : analysis.facts.ranks) byHost[rank.hostId].push_back(rank.rank);
    for (const facts::RankFacts& rank : analysis.facts.ranks) {
        suspects.push_back({.ranks = {rank.rank}});
        if (byHost.size() > 1) suspects.push_back({.ranks = {rank.rank}, .betweenNodes = true});
    }
    for (const auto& [host, ranks] : byHost) {
        if (byHost.size() < 2 || ranks.size() < 2) continue;
        suspects.push_back({.ranks = ranks, .node = true, .betweenNodes = true});
    }
    std::set<std::pair<int, int>> pairs;
    for (const LinkProbe& probe : probes)
        if (probe.pair) pairs.insert({probe.ranks[0], probe.ranks[1]});
    for (const auto& [from, to] : pairs) {
        suspects.push_back({.ranks = {from, to}, .pair = true});
        if (from < to && pairs.contains({to, from}))
            suspects.push_back({.ranks = {from, to}, .pair = true, .bothWays = true});
    }
    return suspects;
}

/// Probes by the ranks that they touch, each in the order of the probes.
using ProbesOfRanks = std::map<int, std::vector<const LinkProbe*>>;

/// Gives the suspect what it explains. False where a probe that needs its link is fast, or none does.
bool isConsistent(const ProbesOfRanks& probesOf, LinkSuspect& suspect) {
    std::set<const LinkProbe*> needing;  // probes lie in one list: in its order
    for (const int rank : suspect.ranks)
        if (const auto at = probesOf.find(rank); at != probesOf.end())
            for (const LinkProbe* probe : at->second) {
                if (!needs(suspect, *probe)) continue;
                if (!probe->maybeSlow()) return false;
                needing.insert(probe);
            }
    suspect.explains.assign(needing.begin(), needing.end());
    return !suspect.explains.empty();
}

/// A rank and its way to other nodes, or the only pair it is in, are one claim; the narrower one is made.
bool sameClaim(const LinkSuspect& a, const LinkSuspect& b) {
    if (a.node || b.node) return false;
    const LinkSuspect& wide = a.ranks.size() >= b.ranks.size() ? a : b;
    const LinkSuspect& narrow = &wide == &a ? b : a;
    return std::ranges::all_of(narrow.ranks, [&](int rank) { return text::contains(wide.ranks, rank); });
}

}  // namespace

LinkSuspects findSuspects(const Analysis& analysis, const std::vector<LinkProbe>& probes) {
    LinkSuspects result;
    std::set<const LinkProbe*> open;
    for (const LinkProbe& probe : probes)
        if (probe.maybeSlow()) open.insert(&probe);
    if (open.empty()) return result;
    ProbesOfRanks probesOf;
    for (const LinkProbe& probe : probes)
        for (const int rank : probe.ranks) probesOf[rank].push_back(&probe);
    const auto anyFast = [&](bool betweenNodes) {  // and so none that needs a consistent suspect's link
        return std::ranges::any_of(
            probes, [&](const LinkProbe& probe) { return !probe.maybeSlow() && probe.betweenNodes == betweenNodes; });
    };
    const bool fastOfClass[] = {anyFast(false), anyFast(true)};
    std::vector<LinkSuspect> suspects = allSuspects(analysis, probes);
    std::erase_if(suspects, [&](LinkSuspect& suspect) { return !isConsistent(probesOf, suspect); });
    while (!open.empty()) {
        const auto gain = [&](const LinkSuspect& s) {
            return std::ranges::count_if(s.explains, [&](const LinkProbe* p) { return open.count(p) != 0; });
        };
        std::ptrdiff_t most = 0;
        for (const LinkSuspect& suspect : suspects) most = std::max(most, gain(suspect));
        if (most == 0) break;
        std::vector<const LinkSuspect*> best;
        for (const LinkSuspect& suspect : suspects) {
            if (gain(suspect) != most) continue;
            const auto same =
                std::ranges::find_if(best, [&](const LinkSuspect* other) { return sameClaim(*other, suspect); });
            if (same == best.end())
                best.push_back(&suspect);
            else if (suspect.betweenNodes || (suspect.pair && !(*same)->pair))
                *same = &suspect;
        }
        // Fast probes of the same kind must tell the suspect from the rest: without any, all links may be slow alike.
        const bool told = best.size() == 1 && fastOfClass[best.front()->explains.front()->betweenNodes];
        if (!told) {
            std::set<int> ranks;
            for (const LinkSuspect* suspect : best) ranks.insert(suspect->ranks.begin(), suspect->ranks.end());
            result.candidates.assign(ranks.begin(), ranks.end());
            break;
        }
        for (const LinkProbe* probe : best.front()->explains) open.erase(probe);
        LinkSuspect& found = result.found.emplace_back(*best.front());
        for (const LinkProbe& probe : probes)
            if (!std::ranges::binary_search(found.explains, &probe)) found.exonerates.push_back(&probe);
    }
    result.unexplained.assign(open.begin(), open.end());
    std::ranges::sort(result.unexplained, {}, &LinkProbe::communicatorId);
    return result;
}

namespace {

/// Bytes that NCCL's ring passes on at once, in all channels: a member's part of the message, in each channel at most
/// half of its buffer (src/include/collectives.h of 2.28: ALLREDUCE_CHUNKSTEPS is NCCL_STEPS / 2, as for all-gather and
/// reduce-scatter). LL and LL128 take less, so that this errs to the large side.
double largestChunk(const Analysis& analysis, double partBytes, int channels) {
    constexpr double kBufferBytes = 4 << 20;  // DEFAULT_BUFFSIZE of Simple (src/init.cc)
    const double told = std::atof(analysis.facts.text("env.NCCL_BUFFSIZE").c_str());
    return channels > 0 ? std::min(partBytes, channels * (told > 0 ? told : kBufferBytes) / 2) : partBytes;
}

/// By collective: the channels that one member's kernel took.
std::map<int64_t, int> channelsOf(const Analysis& analysis, const LinkProbe& probe) {
    std::map<int64_t, int> channels;
    if (const facts::RankSummary* rank = analysis.findRank(probe.ranks.front()))
        for (const facts::CommTask& task : rank->communication) channels[task.collectiveId] = task.channels;
    return channels;
}

/// Per large collective: how much earlier than the last one each member leaves (ns), members in the communicator's
/// order. `chunks`: in that of a chunk's time instead.
std::vector<std::vector<double>> leads(const Analysis& analysis, const LinkProbe& probe, bool chunks = false) {
    const facts::Communicator& communicator = analysis.facts.communicators.at(probe.communicatorId);
    std::map<int64_t, std::map<int, int64_t>> ends;  // collective: rank: end
    std::map<int64_t, double> unitNs;
    const std::map<int64_t, int> channels = chunks ? channelsOf(analysis, probe) : std::map<int64_t, int>{};
    for (const LargeCollective& c : largeCollectives(analysis, communicator)) {
        ends[c.collective->id];
        double& unit = unitNs[c.collective->id] = 1;
        if (!chunks) continue;
        const double partBytes = static_cast<double>(c.collective->bytes.value_or(0)) / communicator.size;
        const auto known = channels.find(c.collective->id);
        const double chunk = largestChunk(analysis, partBytes, known == channels.end() ? 0 : known->second);
        unit = c.transferNs / (facts::busFactor(c.collective->op, communicator.size) * communicator.size) *
               (partBytes > 0 ? chunk / partBytes : 1);
    }
    for (const int rank : communicator.ranks)
        for (const store::CollectiveMember& member :
             std::ranges::equal_range(analysis.facts.members, rank, {}, &store::CollectiveMember::rank)) {
            const auto at = ends.find(member.collectiveId);
            if (at != ends.end() && member.endNs) at->second[rank] = *member.endNs;
        }
    std::vector<std::vector<double>> result;
    for (const auto& [id, ofRank] : ends) {
        if (ofRank.size() < probe.ranks.size()) continue;
        const int64_t last = std::ranges::max(ofRank | std::views::values);
        std::vector<double>& row = result.emplace_back();
        for (int rank : probe.ranks) row.push_back(static_cast<double>(last - ofRank.at(rank)) / unitNs.at(id));
    }
    return result;
}

double medianLead(const std::vector<std::vector<double>>& rows, size_t member) {
    std::vector<double> values;
    for (const std::vector<double>& row : rows) values.push_back(row[member]);
    return facts::median(std::move(values));
}

struct Leaving {
    std::vector<bool> last;  // members in the communicator's order
    double gapNs = 0;        // by which the others leave earlier, at least
    size_t agree = 0, samples = 0;
};

/// Who is last in most collectives, by a gap that can be seen: those under half of it leave together, those above it
/// are earlier, nobody is between.
std::optional<Leaving> findLeaving(const std::vector<std::vector<double>>& rows, double visibleNs) {
    if (rows.size() < CollectiveSpeedThresholds::kFewest) return std::nullopt;
    const size_t members = rows.front().size();
    Leaving leaving;
    leaving.samples = rows.size();
    for (size_t m = 0; m < members; ++m) {
        const double early = medianLead(rows, m);
        leaving.last.push_back(early <= visibleNs / 2);
        if (leaving.last.back()) continue;
        if (early <= visibleNs) return std::nullopt;
        leaving.gapNs = leaving.gapNs > 0 ? std::min(leaving.gapNs, early) : early;
    }
    for (const std::vector<double>& row : rows) {
        bool agrees = true;
        for (size_t m = 0; m < members; ++m) agrees = agrees && (row[m] <= visibleNs / 2) == leaving.last[m];
        leaving.agree += agrees;
    }
    const bool told = leaving.gapNs > 0 && static_cast<double>(leaving.agree) >=
                                               LeavingThresholds::kPersistent * static_cast<double>(leaving.samples);
    return told ? std::optional(leaving) : std::nullopt;
}

double visibleNs(const Analysis& analysis, const LinkProbe& probe) {
    return std::max(LeavingThresholds::kVisibleNs,
                    LeavingThresholds::kClockBounds * static_cast<double>(analysis.clockBoundNs(probe.ranks)));
}

/// Of a circle of members: the last ones as a run without gaps, first to last; empty when they are no run, or all.
std::vector<size_t> runOf(const std::vector<bool>& last) {
    const size_t size = last.size();
    std::vector<size_t> starts;
    for (size_t m = 0; m < size; ++m)
        if (last[m] && !last[(m + size - 1) % size]) starts.push_back(m);
    std::vector<size_t> run;
    if (starts.size() != 1) return run;
    for (size_t m = starts.front(); last[m]; m = (m + 1) % size) run.push_back(m);
    return run;
}

/// The members' nodes in ring order, each with whether all of it is last; empty when a node is last in part.
std::vector<bool> wholeNodes(const Analysis& analysis, const LinkProbe& probe, const std::vector<bool>& last,
                             std::vector<std::vector<int>>& nodes) {
    std::map<int64_t, size_t> nodeOfHost;
    std::vector<bool> result;
    for (size_t m = 0; m < last.size(); ++m) {
        const facts::RankFacts* rank = analysis.facts.findRank(probe.ranks[m]);
        if (rank == nullptr) return {};
        const auto [at, fresh] = nodeOfHost.try_emplace(rank->hostId, nodes.size());
        if (fresh) {
            nodes.emplace_back();
            result.push_back(last[m]);
        }
        if (result[at->second] != last[m]) return {};
        nodes[at->second].push_back(probe.ranks[m]);
    }
    return result;
}

/// Three last in a row: both edges of the middle one are slow. Two: the edge between them. One: the receiver behind a
/// slow edge whose sender had buffers left.
bool nameRanks(const std::vector<size_t>& run, const std::vector<int>& ranks, LinkSuspect& suspect) {
    if (run.empty() || run.size() > 3) return false;
    if (run.size() == 2) {
        suspect.pair = true;
        suspect.ranks = {ranks[run[0]], ranks[run[1]]};
    } else {
        suspect.ranks = {ranks[run[run.size() / 2]]};
    }
    return true;
}

}  // namespace

std::optional<LinkSuspect> lastToLeave(const Analysis& analysis, const LinkProbe& probe) {
    if (probe.pair || probe.ranks.size() < 3) return std::nullopt;
    const std::optional<Leaving> leaving = findLeaving(leads(analysis, probe), visibleNs(analysis, probe));
    if (!leaving) return std::nullopt;
    LinkSuspect suspect;
    std::vector<std::vector<int>> nodes;
    const std::vector<bool> whole =
        probe.betweenNodes ? wholeNodes(analysis, probe, leaving->last, nodes) : std::vector<bool>{};
    if (!whole.empty() && nodes.size() < probe.ranks.size()) {
        const std::vector<size_t> run = runOf(whole);
        if (run.size() != 3) return std::nullopt;
        suspect.ranks = nodes[run[1]];
        suspect.node = suspect.betweenNodes = true;
    } else if (!nameRanks(runOf(leaving->last), probe.ranks, suspect)) {
        return std::nullopt;
    }
    std::vector<int> last;
    for (size_t m = 0; m < probe.ranks.size(); ++m)
        if (leaving->last[m]) last.push_back(probe.ranks[m]);
    std::ranges::sort(last);
    suspect.leaving = fmt::format(
        "{} {} last, the others {} or more earlier, in {} of {} large collectives: a ring's slowest edge is busy to "
        "the end",
        text::ranksText(last), last.size() == 1 ? "leaves" : "leave", text::durationText(leaving->gapNs),
        leaving->agree, leaving->samples);
    return suspect;
}

std::optional<double> slowestEdge(const Analysis& analysis, const facts::Communicator& communicator, double most) {
    const LinkProbe probe{
        .communicatorId = communicator.id, .betweenNodes = communicator.nodes > 1, .ranks = communicator.ranks};
    const std::optional<Leaving> leaving =
        lastToLeave(analysis, probe) ? findLeaving(leads(analysis, probe), visibleNs(analysis, probe)) : std::nullopt;
    if (!leaving) return std::nullopt;
    const std::vector<std::vector<double>> chunks = leads(analysis, probe, true);
    double nearest = most;  // of the members that leave earlier: the one behind the slow edge, a chunk ahead
    for (size_t m = 0; m < probe.ranks.size(); ++m)
        if (!leaving->last[m]) nearest = std::min(nearest, medianLead(chunks, m));
    return 1 / (1 - nearest);
}

}  // namespace rankscope::job
