// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "gui/session/event_details.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

using store::Statement;
using store::TraceReader;

constexpr size_t kMaxLines = 64;  // lines; the summary above them speaks of all

struct Member {
    store::CollectiveMember row;
    bool last = false;
};

std::string orUnknown(std::string_view text) {
    return text.empty() ? "unknown" : std::string(text);
}

std::string duration(const std::optional<int64_t>& ns) {
    return ns ? exactDuration(*ns) : "unknown";
}

// Difference of two times that a damaged file may have made anything.
std::optional<int64_t> between(const std::optional<int64_t>& from, const std::optional<int64_t>& to) {
    int64_t difference = 0;
    if (!from || !to || __builtin_sub_overflow(*to, *from, &difference)) return std::nullopt;
    return difference;
}

std::optional<int64_t> optional(const Statement& query, int column) {
    return query.isNull(column) ? std::nullopt : std::optional<int64_t>(query.integer(column));
}

std::string communicatorText(TraceReader& reader, int64_t id) {
    Statement query(reader.database(), "SELECT name, n_ranks, node_count FROM communicator WHERE id = ?1");
    query.bind(1, id);
    if (!query.step()) return fmt::format("#{}, which does not exist", id);
    std::string text =
        query.isNull(0) ? fmt::format("#{}", id) : fmt::format("{} (#{})", displayText(query.text(0)), id);
    const auto counted = [](int64_t number, const char* noun) {
        return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
    };
    return text + ", " + counted(query.integer(1), "rank") + " on " + counted(query.integer(2), "host");
}

std::vector<int32_t> membersOf(TraceReader& reader, int64_t communicator) {
    std::vector<int32_t> ranks;
    Statement query(reader.database(),
                    "SELECT rank FROM communicator_member WHERE communicator_id = ?1 ORDER BY comm_rank LIMIT 100000");
    query.bind(1, communicator);
    while (query.step()) ranks.push_back(static_cast<int32_t>(query.integer(0)));
    return ranks;
}

DetailSection callSection(TraceReader& reader, const store::NcclCall& call) {
    DetailSection section{"NCCL call", {}};
    section.rows.push_back(
        {"operation", std::string(store::toText(call.op)), EventLink{EventTable::ncclCall, call.id, call.rank}});
    section.rows.push_back({"size", call.bytes ? bytesText(*call.bytes) : "unknown", {}});
    if (call.count)
        section.rows.push_back(
            {"elements",
             fmt::format("{} of {}", groupedNumber(*call.count), orUnknown(store::toText(call.dataType))),
             {}});
    section.rows.push_back({"algorithm", orUnknown(store::toText(call.algorithm)), {}});
    section.rows.push_back({"protocol", orUnknown(store::toText(call.protocol)), {}});
    if (call.channels) section.rows.push_back({"channels", std::to_string(*call.channels), {}});
    if (call.peer)
        section.rows.push_back(
            {store::isP2p(call.op) ? "peer" : "root", fmt::format("rank {} of the communicator", *call.peer), {}});
    section.rows.push_back({"call on the host",
                            fmt::format("at {}, took {}", timeText(call.startNs), exactDuration(call.durNs)),
                            EventLink{EventTable::ncclCall, call.id, call.rank}});
    if (call.kernelId)
        section.rows.push_back({"carried by", fmt::format("kernel #{}", *call.kernelId),
                                EventLink{EventTable::kernel, *call.kernelId, call.rank}});
    if (call.communicatorId) {
        section.rows.push_back({"communicator", communicatorText(reader, *call.communicatorId), {}});
        section.rows.push_back({"its members", ranksText(membersOf(reader, *call.communicatorId)), {}});
    }
    return section;
}

std::vector<Member> readMembers(TraceReader& reader, int64_t collective) {
    std::vector<Member> members;
    Statement query(reader.database(),
                    "SELECT rank, call_id, kernel_id, arrival_ns, end_ns, wait_ns, transfer_ns FROM collective_member "
                    "WHERE collective_id = ?1 ORDER BY rank");
    query.bind(1, collective);
    while (query.step()) {
        Member member;
        member.row = {collective,         static_cast<int32_t>(query.integer(0)),
                      optional(query, 1), optional(query, 2),
                      optional(query, 3), optional(query, 4),
                      optional(query, 5), optional(query, 6)};
        members.push_back(member);
    }
    return members;
}

DetailRow memberRow(const Member& member, const std::optional<int64_t>& firstArrivalNs) {
    DetailRow row{fmt::format("rank {}", member.row.rank), "", {}};
    const std::optional<int64_t> after = between(firstArrivalNs, member.row.arrivalNs);
    row.value =
        !member.row.arrivalNs
            ? "not recorded"
            : fmt::format("arrived {} after the first, waited {}", after ? durationText(*after) : "an unknown time",
                          member.row.waitNs ? durationText(*member.row.waitNs) : "an unknown time");
    if (member.last) row.value += ", the last";
    if (member.row.kernelId) row.link = EventLink{EventTable::kernel, *member.row.kernelId, member.row.rank};
    return row;
}

// Of the collective that the call belongs to.
std::vector<DetailSection> collectiveSections(TraceReader& reader, const store::NcclCall& call) {
    Statement query(reader.database(),
                    "SELECT id, members, first_arrival_ns, last_arrival_ns, last_rank, transfer_ns, complete FROM "
                    "collective WHERE communicator_id = ?1 AND seq = ?2 LIMIT 1");
    query.bind(1, *call.communicatorId).bind(2, *call.seq);
    if (!query.step()) return {};
    const int64_t id = query.integer(0), recorded = query.integer(1);
    const std::optional<int64_t> first = optional(query, 2), last = optional(query, 3), lastRank = optional(query, 4),
                                 transfer = optional(query, 5);
    const bool complete = query.integer(6) != 0;

    std::vector<Member> members = readMembers(reader, id);
    DetailSection summary{"Collective", {}};
    summary.rows.push_back({"arrival skew", duration(between(first, last)), {}});
    summary.rows.push_back({"last to arrive",
                            lastRank ? fmt::format("rank {}", *lastRank)
                                     : "unknown: closer together than the clocks can tell, or not recorded",
                            {}});
    summary.rows.push_back(
        {"transfer", transfer ? exactDuration(*transfer) : "not defined for this operation, or unknown", {}});
    if (transfer && *transfer > 0 && call.bytes)
        summary.rows.push_back(
            {"size / transfer",
             fmt::format("{:.4g} GB/s", static_cast<double>(*call.bytes) / static_cast<double>(*transfer)),
             {}});
    if (!complete)
        summary.rows.push_back(
            {"incomplete", fmt::format("{} members are recorded, or their calls disagree", recorded), {}});
    for (Member& member : members) {
        member.last = lastRank && member.row.rank == *lastRank;
        if (member.last && member.row.kernelId)
            summary.rows[1].link = EventLink{EventTable::kernel, *member.row.kernelId, member.row.rank};
        if (member.row.rank == call.rank) summary.rows.push_back({"this rank waited", duration(member.row.waitNs), {}});
    }
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
        return a.row.arrivalNs.value_or(INT64_MIN) > b.row.arrivalNs.value_or(INT64_MIN);
    });
    DetailSection list{"Members, the last to arrive first", {}};
    for (size_t i = 0; i < members.size() && i < kMaxLines; ++i) list.rows.push_back(memberRow(members[i], first));
    if (members.size() > kMaxLines)
        list.rows.push_back(
            {"more", fmt::format("{} further members arrived earlier", members.size() - kMaxLines), {}});
    std::vector<DetailSection> sections{std::move(summary)};
    if (!list.rows.empty()) sections.push_back(std::move(list));
    return sections;
}

std::optional<int64_t> kernelOf(TraceReader& reader, const std::optional<int64_t>& call) {
    store::NcclCall row;
    return call && reader.find(*call, row) ? row.kernelId : std::nullopt;
}

// Of the message that a send or receive belongs to.
std::vector<DetailSection> messageSections(TraceReader& reader, const store::NcclCall& call) {
    Statement query(
        reader.database(),
        "SELECT src_rank, dst_rank, send_call_id, recv_call_id, send_arrival_ns, recv_arrival_ns, send_wait_ns, "
        "recv_wait_ns, transfer_ns, complete FROM p2p WHERE send_call_id = ?1 OR recv_call_id = ?1 LIMIT 1");
    query.bind(1, call.id);
    if (!query.step()) return {};
    const auto source = static_cast<int32_t>(query.integer(0)), target = static_cast<int32_t>(query.integer(1));
    const std::optional<int64_t> sendCall = optional(query, 2), receiveCall = optional(query, 3),
                                 transfer = optional(query, 8);
    const std::optional<int64_t> sendAhead = between(optional(query, 4), optional(query, 5));
    DetailSection section{"Message", {}};
    const auto side = [&](const char* label, int32_t rank, const std::optional<int64_t>& callId,
                          const std::optional<int64_t>& waitNs) {
        DetailRow row{
            label, fmt::format("rank {}, waited {}", rank, waitNs ? durationText(*waitNs) : "an unknown time"), {}};
        if (const auto kernel = kernelOf(reader, callId)) row.link = EventLink{EventTable::kernel, *kernel, rank};
        section.rows.push_back(std::move(row));
    };
    side("sender", source, sendCall, optional(query, 6));
    side("receiver", target, receiveCall, optional(query, 7));
    if (sendAhead)
        section.rows.push_back(
            {"arrival skew",
             fmt::format("{}, the {} came last",
                         exactDuration(*sendAhead >= 0 ? *sendAhead : -std::max(*sendAhead, -INT64_MAX)),
                         *sendAhead >= 0 ? "receiver" : "sender"),
             {}});
    section.rows.push_back({"transfer", duration(transfer), {}});
    if (query.integer(9) == 0)
        section.rows.push_back({"incomplete", "one side is not recorded, or the sizes disagree", {}});
    return {std::move(section)};
}

// What the proxy threads did for the call on this rank, summed over channels.
std::vector<DetailSection> networkSections(TraceReader& reader, const store::NcclCall& call) {
    if (!reader.hasTable("proxy_op")) return {};
    const store::IdRange ids = reader.extent<store::ProxyOp>(call.rank);
    Statement query(reader.database(),
                    "SELECT is_send, count(*), sum(bytes), max(gpu_wait_ns), max(peer_wait_ns), max(network_wait_ns) "
                    "FROM proxy_op WHERE id BETWEEN ?1 AND ?2 AND call_id = ?3 GROUP BY is_send ORDER BY is_send DESC");
    query.bind(1, ids.first).bind(2, ids.last).bind(3, call.id);
    DetailSection section{"Network transfers of this rank", {}};
    while (query.step())
        section.rows.push_back(
            {query.integer(0) != 0 ? "sent" : "received",
             fmt::format("{} in {} transfers; longest wait for the GPU {}, for the peer {}, for the network {}",
                         bytesText(query.integer(2)), query.integer(1), durationText(query.integer(3)),
                         durationText(query.integer(4)), durationText(query.integer(5))),
             {}});
    if (section.rows.empty()) return {};
    return {std::move(section)};
}

}  // namespace

std::vector<DetailSection> readCommunication(TraceReader& reader, int64_t callId) {
    store::NcclCall call;
    if (!reader.find(callId, call)) return {};
    std::vector<DetailSection> sections{callSection(reader, call)};
    std::vector<DetailSection> more;
    if (store::isP2p(call.op))
        more = messageSections(reader, call);
    else if (call.communicatorId && call.seq)
        more = collectiveSections(reader, call);
    for (DetailSection& section : networkSections(reader, call)) more.push_back(std::move(section));
    for (DetailSection& section : more) sections.push_back(std::move(section));
    return sections;
}

}  // namespace rankscope::gui
