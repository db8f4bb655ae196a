// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/communicator_set.h"

#include <algorithm>
#include <map>
#include <set>

namespace rankscope::collector {
namespace {

/// Comm ranks must be known and differ; otherwise the order of global ranks is the best guess, as frameworks build
/// groups in it.
void completeCommRanks(JoinedCommunicator& joined, const std::vector<RankSummary>& summaries) {
    std::set<int32_t> seen;
    bool usable = true;
    for (const JoinedMember& member : joined.members)
        usable = usable && member.commRank >= 0 && seen.insert(member.commRank).second;
    if (!usable) {
        std::sort(joined.members.begin(), joined.members.end(), [&](const JoinedMember& a, const JoinedMember& b) {
            return summaries[static_cast<size_t>(a.summary)].rank < summaries[static_cast<size_t>(b.summary)].rank;
        });
        for (size_t i = 0; i < joined.members.size(); ++i) joined.members[i].commRank = static_cast<int32_t>(i);
    }
    std::sort(joined.members.begin(), joined.members.end(),
              [](const JoinedMember& a, const JoinedMember& b) { return a.commRank < b.commRank; });
    joined.nRanks = std::max(joined.nRanks, static_cast<int32_t>(joined.members.size()));
}

}  // namespace

int32_t JoinedCommunicator::summaryOf(int32_t commRank) const {
    const auto place = std::lower_bound(members.begin(), members.end(), commRank,
                                        [](const JoinedMember& a, int32_t b) { return a.commRank < b; });
    return place != members.end() && place->commRank == commRank ? place->summary : -1;
}

CommunicatorSet::CommunicatorSet(const std::vector<RankSummary>& summaries) {
    std::map<uint64_t, JoinedCommunicator> byHash;
    for (size_t s = 0; s < summaries.size(); ++s) {
        const auto& locals = summaries[s].communicators;
        for (size_t local = 0; local < locals.size(); ++local) {
            JoinedCommunicator& joined = byHash[locals[local].hash];
            joined.hash = locals[local].hash;
            if (joined.identity.empty() || joined.identity == "inferred") joined.identity = locals[local].identity;
            joined.nRanks = std::max(joined.nRanks, locals[local].nRanks);
            if (joined.name.empty()) joined.name = locals[local].name;
            const int32_t parent = locals[local].parent;
            if (parent >= 0 && static_cast<size_t>(parent) < locals.size() &&
                locals[static_cast<size_t>(parent)].hash != joined.hash) {
                joined.parentHash = locals[static_cast<size_t>(parent)].hash;
            }
            const bool again = !joined.members.empty() && joined.members.back().summary == static_cast<int32_t>(s);
            if (!again)
                joined.members.push_back(
                    {static_cast<int32_t>(s), static_cast<int32_t>(local), locals[local].commRank});
        }
    }
    std::map<uint64_t, int32_t> indexOf;
    for (auto& [hash, joined] : byHash) {
        completeCommRanks(joined, summaries);
        indexOf[hash] = static_cast<int32_t>(m_joined.size());
        m_joined.push_back(std::move(joined));
    }
    for (const RankSummary& summary : summaries) {
        auto& byLocal = m_byLocal.emplace_back();
        for (const LocalCommunicator& communicator : summary.communicators)
            byLocal.push_back(indexOf[communicator.hash]);
    }
}

int32_t CommunicatorSet::joinedOf(int32_t summary, int32_t local) const {
    return local < 0 ? -1 : m_byLocal[static_cast<size_t>(summary)][static_cast<size_t>(local)];
}

}  // namespace rankscope::collector
