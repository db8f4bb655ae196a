// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/collective_matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace rankscope::collector {
namespace {

using store::Op;

struct Arrival {
    int64_t arrivalNs;
    int64_t endNs;
    int32_t summary;
    const CallFact* call;
};

/// Members may move different amounts in these.
bool sizesMayDiffer(Op op) {
    return op == Op::allToAll || op == Op::gather || op == Op::scatter;
}

bool hasRoot(Op op) {
    return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter;
}

bool agree(const CallFact& a, const CallFact& b) {
    if (a.op != b.op) return false;
    if (hasRoot(a.op) && a.peer != b.peer && a.peer >= 0 && b.peer >= 0) return false;
    if (a.dataType != b.dataType && a.dataType != store::DataType::unknown && b.dataType != store::DataType::unknown)
        return false;
    return a.bytes == b.bytes || a.bytes < 0 || b.bytes < 0 || sizesMayDiffer(a.op);
}

/// Counts what went wrong on one communicator, for one loss row each.
struct Disagreement {
    int64_t incomplete = 0;
    int64_t firstIncomplete = -1;
    int64_t contradicting = 0;
    int64_t firstContradicting = -1;
    std::string whoDiffers;  ///< in that one: "rank 3 called all_reduce of 64 bytes bf16, the others ...", empty when
                             ///< no side is the larger one
};

std::string callText(const CallFact& call) {
    std::string text(store::toText(call.op));
    if (call.bytes >= 0) text += fmt::format(" of {} bytes", call.bytes);
    if (call.dataType != store::DataType::unknown) text += fmt::format(" {}", store::toText(call.dataType));
    return text;
}

/// Of ranks that still run: the first call behind all that have a kernel. The device has not come to the end of it yet,
/// and nothing is missing. Of others, and without any kernel, there is none.
std::vector<size_t> underWayFrom(const std::vector<RankSummary>& summaries) {
    std::vector<size_t> all;
    for (const RankSummary& summary : summaries) {
        const auto last = std::find_if(summary.calls.rbegin(), summary.calls.rend(),
                                       [](const CallFact& call) { return call.kernelIndex >= 0; });
        const bool runs = summary.state == store::RankState::running && last != summary.calls.rend();
        all.push_back(runs ? static_cast<size_t>(summary.calls.rend() - last) : summary.calls.size());
    }
    return all;
}

class CollectiveMatcher {
  public:
    explicit CollectiveMatcher(const JoinedRanks& ranks)
        : m_ranks(ranks), m_underWayFrom(underWayFrom(ranks.summaries)) {}

    void add(const InstanceGroups& groups, const InstanceGroup& group);
    MatchedCollectives take() &&;

  private:
    std::vector<Arrival> arrivalsOf(const InstanceGroups& groups, const InstanceGroup& group) const;
    void measure(store::Collective& collective, const std::vector<Arrival>& arrivals,
                 const JoinedCommunicator& communicator);
    std::optional<int32_t> lastRankOf(const std::vector<Arrival>& arrivals) const;
    int64_t peerArrival(Op op, const Arrival& own, const std::vector<Arrival>& arrivals,
                        const JoinedCommunicator& communicator) const;

    const JoinedRanks& m_ranks;
    MatchedCollectives m_matched;
    void countKernels(const InstanceGroups& groups, const InstanceGroup& group);
    bool isUnderWay(const MemberCall& member) const;
    std::string whoDiffers(const std::vector<std::pair<int32_t, const CallFact*>>& calls);

    std::map<int64_t, Disagreement> m_disagreements;  // by trace id of the communicator
    struct Kernels {
        int64_t recorded = 0, missing = 0;
    };
    std::map<int32_t, Kernels> m_kernels;  // of the calls, by rank
    std::vector<size_t> m_underWayFrom;    // by summary
};

bool CollectiveMatcher::isUnderWay(const MemberCall& member) const {
    return static_cast<size_t>(member.call) >= m_underWayFrom[static_cast<size_t>(member.summary)];
}

std::vector<Arrival> CollectiveMatcher::arrivalsOf(const InstanceGroups& groups, const InstanceGroup& group) const {
    std::vector<Arrival> arrivals;
    for (size_t i = group.first; i < group.last; ++i) {
        const MemberCall& member = groups.calls[i];
        const auto summary = static_cast<size_t>(member.summary);
        const CallFact& call = m_ranks.summaries[summary].calls[static_cast<size_t>(member.call)];
        const bool again =
            !arrivals.empty() &&
            arrivals.back().summary == member.summary;  // only a source that numbers calls wrongly does that
        if (call.kernelIndex < 0 || again) continue;
        arrivals.push_back({m_ranks.clocks.jobNs(summary, call.arrivalNs), m_ranks.clocks.jobNs(summary, call.endNs),
                            member.summary, &call});
    }
    return arrivals;
}

/// The rank that arrived last, unless another host's clock bound could turn the order round.
std::optional<int32_t> CollectiveMatcher::lastRankOf(const std::vector<Arrival>& arrivals) const {
    if (arrivals.size() < 2) return std::nullopt;
    const Arrival* last = &arrivals[0];
    for (const Arrival& arrival : arrivals) {
        if (arrival.arrivalNs > last->arrivalNs) last = &arrival;
    }
    const auto hostOf = [this](const Arrival& arrival) {
        return static_cast<size_t>(m_ranks.clocks.hostOfSummary[static_cast<size_t>(arrival.summary)]);
    };
    const size_t lastHost = hostOf(*last);
    for (const Arrival& arrival : arrivals) {
        if (&arrival == last) continue;
        const size_t host = hostOf(arrival);
        const int64_t boundNs =
            host == lastHost ? 0 : m_ranks.clocks.hosts[host].fit.boundNs + m_ranks.clocks.hosts[lastHost].fit.boundNs;
        if (last->arrivalNs - arrival.arrivalNs <= boundNs) return std::nullopt;
    }
    return m_ranks.summaries[static_cast<size_t>(last->summary)].rank;
}

/// Arrival of those a member of a rooted collective depends on: a broadcast's receiver on the root, a reduce's root on
/// everybody.
int64_t CollectiveMatcher::peerArrival(Op op, const Arrival& own, const std::vector<Arrival>& arrivals,
                                       const JoinedCommunicator& communicator) const {
    const int32_t root = communicator.summaryOf(own.call->peer);
    const bool collects = op == Op::reduce || op == Op::gather;
    int64_t peerNs = own.arrivalNs;
    for (const Arrival& other : arrivals) {
        const bool matters = collects ? own.summary == root || other.summary == root : other.summary == root;
        if (matters) peerNs = std::max(peerNs, other.arrivalNs);
    }
    return peerNs;
}

void CollectiveMatcher::measure(store::Collective& collective, const std::vector<Arrival>& arrivals,
                                const JoinedCommunicator& communicator) {
    int64_t firstNs = std::numeric_limits<int64_t>::max();
    int64_t lastNs = std::numeric_limits<int64_t>::min();
    int64_t endNs = std::numeric_limits<int64_t>::min();
    for (const Arrival& arrival : arrivals) {
        firstNs = std::min(firstNs, arrival.arrivalNs);
        lastNs = std::max(lastNs, arrival.arrivalNs);
        endNs = std::max(endNs, arrival.endNs);
    }
    const bool all = static_cast<int32_t>(arrivals.size()) == communicator.nRanks;
    if (!arrivals.empty()) {
        collective.firstArrivalNs = firstNs;
        collective.lastArrivalNs = lastNs;
        collective.endNs = endNs;
        if (all) collective.lastRank = lastRankOf(arrivals);
        if (all && store::isSynchronizing(collective.op)) collective.transferNs = std::max<int64_t>(0, endNs - lastNs);
    }
    for (const Arrival& arrival : arrivals) {
        const auto summary = static_cast<size_t>(arrival.summary);
        store::CollectiveMember member;
        member.collectiveId = collective.id;
        member.rank = m_ranks.summaries[summary].rank;
        member.callId = m_ranks.ids.ncclCall(summary, arrival.call->callIndex);
        member.kernelId = m_ranks.ids.kernel(summary, arrival.call->kernelIndex);
        member.arrivalNs = arrival.arrivalNs;
        member.endNs = arrival.endNs;
        if (all) {
            member.waitNs = std::min(lastNs - arrival.arrivalNs, arrival.endNs - arrival.arrivalNs);
            if (store::isSynchronizing(collective.op)) {
                // Below zero only by the clocks' error.
                member.transferNs = std::max<int64_t>(0, arrival.endNs - lastNs);
            } else {
                const int64_t transferNs = arrival.endNs - peerArrival(collective.op, arrival, arrivals, communicator);
                if (transferNs >= 0) member.transferNs = transferNs;
            }
        }
        m_matched.members.push_back(member);
    }
}

void CollectiveMatcher::countKernels(const InstanceGroups& groups, const InstanceGroup& group) {
    for (size_t i = group.first; i < group.last; ++i) {
        if (isUnderWay(groups.calls[i])) continue;
        const RankSummary& summary = m_ranks.summaries[static_cast<size_t>(groups.calls[i].summary)];
        Kernels& kernels = m_kernels[summary.rank];
        ++(summary.calls[static_cast<size_t>(groups.calls[i].call)].kernelIndex < 0 ? kernels.missing
                                                                                    : kernels.recorded);
    }
}

/// Calls of one collective, by rank. The side with more than half of them is taken for the right one.
std::string CollectiveMatcher::whoDiffers(const std::vector<std::pair<int32_t, const CallFact*>>& calls) {
    for (const auto& [rank, usual] : calls) {
        std::vector<std::pair<int32_t, const CallFact*>> others;
        for (const auto& call : calls)
            if (!agree(*usual, *call.second)) others.push_back(call);
        if (others.empty() || 2 * others.size() >= calls.size()) continue;
        std::string ranks;
        for (const auto& [other, call] : others) {
            ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", other);
            m_matched.disagreeing.push_back(other);
        }
        return fmt::format("{} {} called {}, the others {}", others.size() == 1 ? "rank" : "ranks", ranks,
                           callText(*others.front().second), callText(*usual));
    }
    return {};
}

void CollectiveMatcher::add(const InstanceGroups& groups, const InstanceGroup& group) {
    countKernels(groups, group);
    const MemberCall& front = groups.calls[group.first];
    const JoinedCommunicator& communicator = m_ranks.communicators.all()[static_cast<size_t>(front.communicator)];
    const auto callOf = [&](size_t i) -> const CallFact& {
        return m_ranks.summaries[static_cast<size_t>(groups.calls[i].summary)]
            .calls[static_cast<size_t>(groups.calls[i].call)];
    };
    const CallFact& first = callOf(group.first);
    bool consistent = true;
    int64_t bytes = first.bytes;
    store::Collective collective;
    for (size_t i = group.first; i < group.last; ++i) {
        const CallFact& call = callOf(i);
        consistent = consistent && agree(first, call) &&
                     (i == group.first || groups.calls[i].summary != groups.calls[i - 1].summary);
        bytes = std::max(bytes, call.bytes);
        if (collective.dataType == store::DataType::unknown) collective.dataType = call.dataType;
        if (collective.algorithm == store::Algorithm::unknown) collective.algorithm = call.algorithm;
        if (collective.protocol == store::Protocol::unknown) collective.protocol = call.protocol;
    }
    const auto recorded = static_cast<int32_t>(group.last - group.first);
    const std::vector<Arrival> arrivals = arrivalsOf(groups, group);
    collective.id = static_cast<int64_t>(m_matched.collectives.size()) + 1;
    collective.communicatorId = m_ranks.communicatorIds[static_cast<size_t>(front.communicator)];
    collective.seq = front.seq;
    collective.op = first.op;
    if (bytes >= 0) collective.bytes = bytes;
    collective.members = static_cast<int32_t>(arrivals.size());
    collective.complete = consistent && recorded == communicator.nRanks;
    measure(collective, arrivals, communicator);
    m_matched.collectives.push_back(collective);

    Disagreement& disagreement = m_disagreements[collective.communicatorId];
    if (!consistent) {
        if (disagreement.contradicting++ == 0) {
            disagreement.firstContradicting = front.seq;
            std::vector<std::pair<int32_t, const CallFact*>> calls;
            for (size_t i = group.first; i < group.last; ++i)
                calls.emplace_back(m_ranks.summaries[static_cast<size_t>(groups.calls[i].summary)].rank, &callOf(i));
            disagreement.whoDiffers = whoDiffers(calls);
        }
    } else if (recorded != communicator.nRanks &&
               !std::all_of(groups.calls.begin() + static_cast<std::ptrdiff_t>(group.first),
                            groups.calls.begin() + static_cast<std::ptrdiff_t>(group.last),
                            [this](const MemberCall& call) { return isUnderWay(call); })) {
        if (disagreement.incomplete++ == 0) disagreement.firstIncomplete = front.seq;
    }
}

MatchedCollectives CollectiveMatcher::take() && {
    for (const auto& [id, found] : m_disagreements) {
        if (found.contradicting > 0) {
            m_matched.losses.push_back(
                {0,
                 "unmatched_collective",
                 store::Severity::error,
                 {},
                 "collector",
                 found.contradicting,
                 {},
                 {},
                 fmt::format("members of communicator {} disagree on op, size or type of {} {}, first at number {}{}{}",
                             id, found.contradicting, found.contradicting == 1 ? "collective" : "collectives",
                             found.firstContradicting, found.whoDiffers.empty() ? "" : ": ", found.whoDiffers)});
        }
        if (found.incomplete > 0) {
            m_matched.losses.push_back({0,
                                        "unmatched_collective",
                                        store::Severity::warning,
                                        {},
                                        "collector",
                                        found.incomplete,
                                        {},
                                        {},
                                        fmt::format("{} collectives on communicator {} were not recorded by every "
                                                    "member, first number {}: their waits are unknown",
                                                    found.incomplete, id, found.firstIncomplete)});
        }
    }
    for (const auto& [rank, kernels] : m_kernels) {
        // A rank without any device record says so by its sources.
        if (kernels.missing == 0 || kernels.recorded == 0) continue;
        m_matched.losses.push_back(
            {0,
             "kernel_missing",
             store::Severity::warning,
             rank,
             "collector",
             kernels.missing,
             {},
             {},
             fmt::format("{} of {} collectives that rank {} called have no kernel in the recording: when it arrived is "
                         "unknown, how long its peers waited is estimated",
                         kernels.missing, kernels.missing + kernels.recorded, rank)});
    }
    return std::move(m_matched);
}

}  // namespace

std::vector<int64_t> orderCommunicators(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                                        const HostClocks& clocks) {
    const auto& joined = communicators.all();
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    std::vector<std::tuple<int64_t, int32_t, uint64_t, size_t>> order;  // first use, smallest member, hash, index
    for (size_t i = 0; i < joined.size(); ++i)
        order.emplace_back(kNever, std::numeric_limits<int32_t>::max(), joined[i].hash, i);
    for (size_t s = 0; s < summaries.size(); ++s) {
        for (const CallFact& call : summaries[s].calls) {
            const int32_t index = communicators.joinedOf(static_cast<int32_t>(s), call.communicator);
            if (index < 0) continue;
            int64_t& firstUse = std::get<0>(order[static_cast<size_t>(index)]);
            firstUse = std::min(firstUse, clocks.jobNs(s, call.hostStartNs));
        }
    }
    for (size_t i = 0; i < joined.size(); ++i) {
        for (const JoinedMember& member : joined[i].members) {
            int32_t& smallest = std::get<1>(order[i]);
            smallest = std::min(smallest, summaries[static_cast<size_t>(member.summary)].rank);
        }
    }
    std::sort(order.begin(), order.end());
    std::vector<int64_t> ids(joined.size());
    for (size_t i = 0; i < order.size(); ++i) ids[std::get<3>(order[i])] = static_cast<int64_t>(i) + 1;
    return ids;
}

MatchedCollectives matchCollectives(const JoinedRanks& ranks, const InstanceGroups& groups) {
    CollectiveMatcher matcher(ranks);
    std::vector<InstanceGroup> ordered = groups.groups;
    std::stable_sort(ordered.begin(), ordered.end(), [&](const InstanceGroup& a, const InstanceGroup& b) {
        const MemberCall& x = groups.calls[a.first];
        const MemberCall& y = groups.calls[b.first];
        return std::make_tuple(ranks.communicatorIds[static_cast<size_t>(x.communicator)], x.seq) <
               std::make_tuple(ranks.communicatorIds[static_cast<size_t>(y.communicator)], y.seq);
    });
    for (const InstanceGroup& group : ordered) matcher.add(groups, group);
    return std::move(matcher).take();
}

MatchedMessages matchMessages(const JoinedRanks& ranks, const std::vector<MessagePair>& pairs) {
    MatchedMessages matched;
    int64_t incomplete = 0;
    for (const MessagePair& pair : pairs) {
        const JoinedCommunicator& communicator = ranks.communicators.all()[static_cast<size_t>(pair.communicator)];
        const int32_t src = communicator.summaryOf(pair.srcCommRank);
        const int32_t dst = communicator.summaryOf(pair.dstCommRank);
        const auto callOf = [&](int32_t summary, int32_t call) -> const CallFact* {
            return call < 0 ? nullptr : &ranks.summaries[static_cast<size_t>(summary)].calls[static_cast<size_t>(call)];
        };
        const CallFact* send = callOf(pair.sendSummary, pair.sendCall);
        const CallFact* recv = callOf(pair.recvSummary, pair.recvCall);
        if (src < 0 || dst < 0) {  // the other side left no recording: its global rank is unknown
            ++incomplete;
            continue;
        }
        store::P2p message;
        message.communicatorId = ranks.communicatorIds[static_cast<size_t>(pair.communicator)];
        message.srcRank = ranks.summaries[static_cast<size_t>(src)].rank;
        message.dstRank = ranks.summaries[static_cast<size_t>(dst)].rank;
        message.seq = pair.seq;
        if (send && send->bytes >= 0) message.bytes = send->bytes;
        if (!message.bytes && recv && recv->bytes >= 0) message.bytes = recv->bytes;
        if (send) message.sendCallId = ranks.ids.ncclCall(static_cast<size_t>(src), send->callIndex);
        if (recv) message.recvCallId = ranks.ids.ncclCall(static_cast<size_t>(dst), recv->callIndex);
        if (send && send->kernelIndex >= 0) {
            message.sendArrivalNs = ranks.clocks.jobNs(static_cast<size_t>(src), send->arrivalNs);
            message.sendEndNs = ranks.clocks.jobNs(static_cast<size_t>(src), send->endNs);
        }
        if (recv && recv->kernelIndex >= 0) {
            message.recvArrivalNs = ranks.clocks.jobNs(static_cast<size_t>(dst), recv->arrivalNs);
            message.recvEndNs = ranks.clocks.jobNs(static_cast<size_t>(dst), recv->endNs);
        }
        if (message.sendArrivalNs && message.recvArrivalNs) {
            const int64_t bothNs = std::max(*message.sendArrivalNs, *message.recvArrivalNs);
            message.sendWaitNs = std::min(bothNs - *message.sendArrivalNs, *message.sendEndNs - *message.sendArrivalNs);
            message.recvWaitNs = std::min(bothNs - *message.recvArrivalNs, *message.recvEndNs - *message.recvArrivalNs);
            if (*message.recvEndNs >= bothNs) message.transferNs = *message.recvEndNs - bothNs;
        }
        message.complete = send && recv && (send->bytes == recv->bytes || send->bytes < 0 || recv->bytes < 0);
        if (!message.complete) ++incomplete;
        matched.messages.push_back(message);
    }
    std::sort(matched.messages.begin(), matched.messages.end(), [](const store::P2p& a, const store::P2p& b) {
        return std::tie(a.communicatorId, a.srcRank, a.dstRank, a.seq, a.sendCallId, a.recvCallId) <
               std::tie(b.communicatorId, b.srcRank, b.dstRank, b.seq, b.sendCallId, b.recvCallId);
    });
    for (size_t i = 0; i < matched.messages.size(); ++i) matched.messages[i].id = static_cast<int64_t>(i) + 1;
    if (incomplete > 0) {
        matched.losses.push_back(
            {0,
             "unmatched_p2p",
             store::Severity::warning,
             {},
             "collector",
             incomplete,
             {},
             {},
             fmt::format("{} sends or receives have no partner in the recording, or one of another size", incomplete)});
    }
    return matched;
}

}  // namespace rankscope::collector
