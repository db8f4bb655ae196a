// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/message_counts.h"

#include <algorithm>
#include <set>

#include "analyzer/facts/comm_usage.h"

namespace rankscope::facts {

MessageCounts::MessageCounts(const TraceFacts& facts, const std::vector<RankSummary>& ranks) {
    for (const RankSummary& rank : ranks) {
        const RankFacts* known = facts.findRank(rank.rank);
        const int index = known != nullptr ? typicalStep(rank, *known) : -1;
        if (index < 0) continue;
        m_step = known->steps[static_cast<size_t>(index)].step;
        break;
    }
    std::map<int, const StepWindow*> windows;
    for (const RankFacts& rank : facts.ranks)
        for (const StepWindow& window : rank.steps)
            if (window.step == m_step) windows[rank.rank] = &window;
    int64_t largest = 0;
    for (const store::P2p& p2p : facts.pointToPoint) largest = std::max(largest, p2p.bytes.value_or(0));
    const int64_t limit = std::max(CommUsage::kTinyBytes, largest / CommUsage::kTinyShare);
    for (const store::P2p& p2p : facts.pointToPoint) {
        if (p2p.srcRank == p2p.dstRank || !p2p.sendArrivalNs || (p2p.bytes && *p2p.bytes <= limit)) continue;
        const auto window = windows.find(p2p.srcRank);
        if (window == windows.end() || *p2p.sendArrivalNs < window->second->startNs) continue;
        if (*p2p.sendArrivalNs >= window->second->startNs + window->second->durNs) continue;
        m_pairs[{p2p.srcRank, p2p.dstRank}].push_back({p2p.communicatorId, *p2p.sendArrivalNs,
                                                       p2p.recvEndNs.value_or(*p2p.sendArrivalNs),
                                                       p2p.recvArrivalNs.value_or(-1), p2p.bytes.value_or(-1)});
    }
    for (auto& [pair, list] : m_pairs) {
        std::sort(list.begin(), list.end(),
                  [](const SentMessage& a, const SentMessage& b) { return a.sentNs < b.sentNs; });
        m_peers[pair.first].first.push_back(pair.second);
        m_peers[pair.second].second.push_back(pair.first);
    }
}

const std::vector<SentMessage>& MessageCounts::between(int src, int dst) const {
    static const std::vector<SentMessage> kNone;
    const auto at = m_pairs.find({src, dst});
    return at == m_pairs.end() ? kNone : at->second;
}

bool MessageCounts::atOnce(int a, int b) const {
    const std::vector<SentMessage>& out = between(a, b);
    const std::vector<SentMessage>& in = between(b, a);
    if (out.size() != in.size() || out.empty()) return false;
    std::set<int64_t> receives;  // kernels of rank a that receive from b, by their start
    for (const SentMessage& message : in) receives.insert(message.readyNs);
    return std::all_of(out.begin(), out.end(), [&](const SentMessage& m) { return receives.count(m.sentNs) != 0; });
}

bool MessageCounts::ring(int rank) const {
    const auto at = m_peers.find(rank);
    return at != m_peers.end() && at->second.first.size() == 1 && at->second.second.size() == 1 &&
           at->second.first != at->second.second;
}

}  // namespace rankscope::facts
