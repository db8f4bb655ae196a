// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/collective_members.h"

#include <algorithm>
#include <tuple>

#include "collector/store/reader.h"

namespace rankscope::exports {
namespace {

/// Takes the members of one collective, in a row; arrows lead along the order of their arrival.
void placeMembers(std::span<MemberKernel> members, std::span<const int64_t> arrivals) {
    if (members.size() < 2) return;
    std::vector<size_t> order(members.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return arrivals[i]; });
    for (size_t i = 0; i < order.size(); ++i) {
        members[order[i]].hasFlow = true;
        members[order[i]].place = i == 0                  ? ExportedFlow::Place::first
                                  : i + 1 == order.size() ? ExportedFlow::Place::last
                                                          : ExportedFlow::Place::between;
    }
}

template <typename Row>
const Row* findById(const std::vector<Row>& rows, int64_t id) {
    const auto at = std::ranges::lower_bound(rows, id, {}, &Row::id);
    return at != rows.end() && at->id == id ? &*at : nullptr;
}

}  // namespace

CollectiveMembers::CollectiveMembers(store::TraceReader& trace, const Wanted& wanted)
    : m_collectives(trace.all<store::Collective>()), m_messages(trace.all<store::P2p>()) {
    std::ranges::sort(m_collectives, {}, &store::Collective::id);
    std::ranges::sort(m_messages, {}, &store::P2p::id);
    readCollectives(trace, wanted);
    readMessages(trace, wanted);
    std::ranges::sort(m_members, {},
                      [](const MemberKernel& m) { return std::tuple(m.rank, m.kernelId, m.isMessage, m.id); });
}

void CollectiveMembers::readCollectives(store::TraceReader& trace, const Wanted& wanted) {
    auto cursor = trace.cursor<store::CollectiveMember>();
    store::CollectiveMember row;
    std::vector<int64_t> arrivals;  // of the collective at the end of m_members
    const auto closeCollective = [&] {
        placeMembers(std::span(m_members).last(arrivals.size()), arrivals);
        arrivals.clear();
    };
    while (cursor.next(row)) {
        if (!row.kernelId || !row.arrivalNs || !wanted(row.rank, *row.arrivalNs)) continue;
        if (!arrivals.empty() && m_members.back().id != row.collectiveId) closeCollective();
        m_members.push_back({*row.kernelId, row.collectiveId, false, row.waitNs.value_or(-1), row.rank});
        arrivals.push_back(*row.arrivalNs);
    }
    closeCollective();
}

void CollectiveMembers::readMessages(store::TraceReader& trace, const Wanted& wanted) {
    for (const store::P2p& message : m_messages) {
        std::vector<int64_t> arrivals;
        const auto add = [&](const store::Maybe<int64_t>& callId, const store::Maybe<int64_t>& arrivalNs,
                             const store::Maybe<int64_t>& waitNs, int rank) {
            store::NcclCall call;
            if (!callId || !arrivalNs || !wanted(rank, *arrivalNs) || !trace.find(*callId, call) || !call.kernelId)
                return;
            m_members.push_back({*call.kernelId, message.id, true, waitNs.value_or(-1), rank});
            arrivals.push_back(*arrivalNs);
        };
        add(message.sendCallId, message.sendArrivalNs, message.sendWaitNs, message.srcRank);
        add(message.recvCallId, message.recvArrivalNs, message.recvWaitNs, message.dstRank);
        placeMembers(std::span(m_members).last(arrivals.size()), arrivals);
    }
}

std::span<const MemberKernel> CollectiveMembers::of(int rank, int64_t kernelId) const {
    const auto found = std::ranges::equal_range(m_members, std::pair(rank, kernelId), {}, [](const MemberKernel& m) {
        return std::pair(static_cast<int>(m.rank), m.kernelId);
    });
    return {found.begin(), found.end()};
}

const store::Collective* CollectiveMembers::collective(int64_t id) const {
    return findById(m_collectives, id);
}

const store::P2p* CollectiveMembers::message(int64_t id) const {
    return findById(m_messages, id);
}

}  // namespace rankscope::exports
