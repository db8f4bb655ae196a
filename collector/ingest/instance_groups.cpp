// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/instance_groups.h"

#include <algorithm>
#include <tuple>

namespace rankscope::collector {
namespace {

int32_t commRankOf(const JoinedCommunicator& communicator, int32_t summary) {
    for (const JoinedMember& member : communicator.members) {
        if (member.summary == summary) return member.commRank;
    }
    return -1;
}

struct MessageSide {
    MessagePair pair;  ///< one side filled
    auto key() const {
        return std::tie(pair.communicator, pair.srcCommRank, pair.dstCommRank, pair.seq, pair.sendSummary);
    }
    bool sameMessage(const MessageSide& other) const {
        return pair.communicator == other.pair.communicator && pair.srcCommRank == other.pair.srcCommRank &&
               pair.dstCommRank == other.pair.dstCommRank && pair.seq == other.pair.seq;
    }
};

}  // namespace

InstanceGroups groupCollectives(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators) {
    InstanceGroups result;
    for (size_t s = 0; s < summaries.size(); ++s) {
        const auto& calls = summaries[s].calls;
        for (size_t c = 0; c < calls.size(); ++c) {
            if (store::isP2p(calls[c].op) || calls[c].seq < 0) continue;
            const int32_t joined = communicators.joinedOf(static_cast<int32_t>(s), calls[c].communicator);
            if (joined >= 0)
                result.calls.push_back({joined, calls[c].seq, static_cast<int32_t>(s), static_cast<int32_t>(c)});
        }
    }
    std::sort(result.calls.begin(), result.calls.end(), [](const MemberCall& a, const MemberCall& b) {
        return std::tie(a.communicator, a.seq, a.summary, a.call) < std::tie(b.communicator, b.seq, b.summary, b.call);
    });
    for (size_t i = 0; i < result.calls.size(); ++i) {
        const MemberCall& call = result.calls[i];
        const bool same =
            i > 0 && result.calls[i - 1].communicator == call.communicator && result.calls[i - 1].seq == call.seq;
        if (!same) result.groups.push_back({i, i});
        result.groups.back().last = i + 1;
    }
    return result;
}

std::vector<MessagePair> pairMessages(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators) {
    std::vector<MessageSide> sides;
    for (size_t s = 0; s < summaries.size(); ++s) {
        const auto& calls = summaries[s].calls;
        for (size_t c = 0; c < calls.size(); ++c) {
            if (!store::isP2p(calls[c].op) || calls[c].seq < 0 || calls[c].peer < 0) continue;
            const auto summary = static_cast<int32_t>(s);
            const int32_t joined = communicators.joinedOf(summary, calls[c].communicator);
            if (joined < 0) continue;
            const int32_t own = commRankOf(communicators.all()[static_cast<size_t>(joined)], summary);
            const bool sends = calls[c].op == store::Op::send;
            MessagePair pair{joined, sends ? own : calls[c].peer, sends ? calls[c].peer : own, calls[c].seq};
            (sends ? pair.sendSummary : pair.recvSummary) = summary;
            (sends ? pair.sendCall : pair.recvCall) = static_cast<int32_t>(c);
            sides.push_back({pair});
        }
    }
    std::sort(sides.begin(), sides.end(), [](const MessageSide& a, const MessageSide& b) { return a.key() < b.key(); });
    std::vector<MessagePair> pairs;
    for (size_t i = 0; i < sides.size(); ++i) {
        MessagePair pair = sides[i].pair;
        // Receives come first: their sendSummary is -1.
        if (pair.recvCall >= 0 && i + 1 < sides.size() && sides[i + 1].pair.sendCall >= 0 &&
            sides[i].sameMessage(sides[i + 1])) {
            pair.sendSummary = sides[i + 1].pair.sendSummary;
            pair.sendCall = sides[i + 1].pair.sendCall;
            ++i;
        }
        pairs.push_back(pair);
    }
    return pairs;
}

}  // namespace rankscope::collector
