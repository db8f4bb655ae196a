// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/link_suspects.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/job/analysis.h"

namespace rankscope::job {
namespace {

bool needs(const LinkSuspect& suspect, const LinkProbe& probe) {
    if (suspect.betweenNodes && !probe.betweenNodes) return false;
    if (suspect.pair) {
        const bool back = suspect.bothWays && probe.ranks.size() == 2 && probe.ranks[0] == suspect.ranks[1] &&
                          probe.ranks[1] == suspect.ranks[0];
        return probe.pair && (probe.ranks == suspect.ranks || back);
    }
    return std::any_of(suspect.ranks.begin(), suspect.ranks.end(), [&](int rank) { return probe.touches(rank); });
}

/// Everything that can be behind a slow probe: ranks, ranks' ways to other nodes, nodes' ways to other nodes, pairs.
std::vector<LinkSuspect> allSuspects(const Analysis& analysis, const std::vector<LinkProbe>& probes) {
    std::vector<LinkSuspect> suspects;
    std::map<int64_t, std::vector<int>> byHost;
    for (const facts::RankFacts& rank : analysis.facts.ranks) byHost[rank.hostId].push_back(rank.rank);
    for (const facts::RankFacts& rank : analysis.facts.ranks) {
        LinkSuspect suspect;
        suspect.ranks = {rank.rank};
        suspects.push_back(suspect);
        suspect.betweenNodes = true;
        if (byHost.size() > 1) suspects.push_back(suspect);
    }
    for (const auto& [host, ranks] : byHost) {
        if (byHost.size() < 2 || ranks.size() < 2) continue;
        LinkSuspect suspect;
        suspect.ranks = ranks;
        suspect.node = suspect.betweenNodes = true;
        suspects.push_back(suspect);
    }
    std::set<std::pair<int, int>> pairs;
    for (const LinkProbe& probe : probes)
        if (probe.pair) pairs.insert({probe.ranks[0], probe.ranks[1]});
    for (const auto& [from, to] : pairs) {
        LinkSuspect suspect;
        suspect.ranks = {from, to};
        suspect.pair = true;
        suspects.push_back(suspect);
        suspect.bothWays = true;
        if (from < to && pairs.count({to, from}) != 0) suspects.push_back(suspect);
    }
    return suspects;
}

void weigh(const std::vector<LinkProbe>& probes, LinkSuspect& suspect) {
    for (const LinkProbe& probe : probes)
        (needs(suspect, probe) && probe.slow() ? suspect.explains : suspect.exonerates).push_back(&probe);
}

bool consistent(const LinkSuspect& suspect) {
    return !suspect.explains.empty() && std::none_of(suspect.exonerates.begin(), suspect.exonerates.end(),
                                                     [&](const LinkProbe* probe) { return needs(suspect, *probe); });
}

/// A rank and its way to other nodes, or the only pair it is in, are one claim; the narrower one is made.
bool sameClaim(const LinkSuspect& a, const LinkSuspect& b) {
    if (a.node || b.node) return false;
    const LinkSuspect& wide = a.ranks.size() >= b.ranks.size() ? a : b;
    const LinkSuspect& narrow = &wide == &a ? b : a;
    return std::all_of(narrow.ranks.begin(), narrow.ranks.end(), [&](int rank) {
        return std::find(wide.ranks.begin(), wide.ranks.end(), rank) != wide.ranks.end();
    });
}

}  // namespace

LinkSuspects findSuspects(const Analysis& analysis, const std::vector<LinkProbe>& probes) {
    LinkSuspects result;
    std::set<const LinkProbe*> open;
    size_t fast = 0;
    for (const LinkProbe& probe : probes) {
        if (probe.slow())
            open.insert(&probe);
        else
            ++fast;
    }
    std::vector<LinkSuspect> suspects = allSuspects(analysis, probes);
    for (LinkSuspect& suspect : suspects) weigh(probes, suspect);
    std::erase_if(suspects, [](const LinkSuspect& s) { return !consistent(s); });
    while (!open.empty()) {
        const auto gain = [&](const LinkSuspect& s) {
            return std::count_if(s.explains.begin(), s.explains.end(),
                                 [&](const LinkProbe* p) { return open.count(p) != 0; });
        };
        std::ptrdiff_t most = 0;
        for (const LinkSuspect& suspect : suspects) most = std::max(most, gain(suspect));
        if (most == 0) break;
        std::vector<const LinkSuspect*> best;
        for (const LinkSuspect& suspect : suspects) {
            if (gain(suspect) != most) continue;
            const auto same = std::find_if(best.begin(), best.end(),
                                           [&](const LinkSuspect* other) { return sameClaim(*other, suspect); });
            if (same == best.end())
                best.push_back(&suspect);
            else if (suspect.betweenNodes || (suspect.pair && !(*same)->pair))
                *same = &suspect;
        }
        // Fast probes of the same kind must tell the suspect from the rest: without any, all links may be slow alike.
        const bool told =
            fast > 0 && best.size() == 1 &&
            std::any_of(best.front()->exonerates.begin(), best.front()->exonerates.end(), [&](const LinkProbe* probe) {
                return !probe->slow() && probe->betweenNodes == best.front()->explains.front()->betweenNodes;
            });
        if (!told) {
            std::set<int> ranks;
            for (const LinkSuspect* suspect : best) ranks.insert(suspect->ranks.begin(), suspect->ranks.end());
            result.candidates.assign(ranks.begin(), ranks.end());
            break;
        }
        for (const LinkProbe* probe : best.front()->explains) open.erase(probe);
        result.found.push_back(*best.front());
    }
    result.unexplained.assign(open.begin(), open.end());
    std::sort(result.unexplained.begin(), result.unexplained.end(),
              [](const LinkProbe* a, const LinkProbe* b) { return a->communicatorId < b->communicatorId; });
    return result;
}

}  // namespace rankscope::job
