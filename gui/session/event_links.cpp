// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_links.h"

#include <fmt/format.h>

#include "analyzer/text/units.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

using store::Statement;

// Larger collectives are drawn to their first members: more lines than pixels say nothing.
constexpr size_t kMaxMembers = 4096;

class LinkFinder {
  public:
    LinkFinder(store::TraceReader& reader, const EventLink& row) : m_reader(reader), m_row(row) {}

    EventLinks find() {
        switch (m_row.table) {
            case EventTable::kernel:
                findLaunch("kernel");
                followKernel();
                break;
            case EventTable::memcpy:
                findLaunch("memcpy");
                break;
            case EventTable::memset:
                findLaunch("memset");
                break;
            case EventTable::apiCall:
                findLaunched();
                break;
            case EventTable::ncclCall:
                followCall(m_row.rowId, true);
                break;
            default:
                break;
        }
        return std::move(m_links);
    }

  private:
    // Ids of the rank's rows; an empty range where it has none.
    store::IdRange extent(const char* table) {
        Statement query(m_reader.database(),
                        "SELECT first_id, last_id FROM extent WHERE table_name = ?1 AND rank = ?2");
        query.bind(1, std::string_view(table)).bind(2, int64_t{m_row.rank});
        return query.step() ? store::IdRange{query.integer(0), query.integer(1)} : store::IdRange{};
    }

    std::optional<int64_t> correlation(const std::string& table) {
        Statement query(m_reader.database(), "SELECT correlation_id FROM " + table + " WHERE id = ?1");
        query.bind(1, m_row.rowId);
        if (!query.step() || query.isNull(0)) return std::nullopt;
        return query.integer(0);
    }

    void addByCorrelation(EventTable table, int64_t correlationId, std::vector<EventLink>& links) {
        const store::IdRange ids = extent(tableName(table));
        Statement query(m_reader.database(), std::string("SELECT id FROM ") + tableName(table) +
                                                 " WHERE id BETWEEN ?1 AND ?2 AND correlation_id = ?3 LIMIT 64");
        query.bind(1, ids.first).bind(2, ids.last).bind(3, correlationId);
        while (query.step()) links.push_back({table, query.integer(0), m_row.rank});
    }

    void findLaunch(const char* table) {
        if (const auto id = correlation(table)) addByCorrelation(EventTable::apiCall, *id, m_links.causes);
    }

    void findLaunched() {
        const auto id = correlation("api_call");
        if (!id) return;
        for (const EventTable table : {EventTable::kernel, EventTable::memcpy, EventTable::memset})
            addByCorrelation(table, *id, m_links.effects);
    }

    void followKernel() {
        const store::IdRange ids = extent("nccl_call");
        Statement query(m_reader.database(),
                        "SELECT id FROM nccl_call WHERE id BETWEEN ?1 AND ?2 AND kernel_id = ?3 LIMIT 64");
        query.bind(1, ids.first).bind(2, ids.last).bind(3, m_row.rowId);
        std::vector<int64_t> calls;
        while (query.step()) calls.push_back(query.integer(0));
        for (const int64_t call : calls) {
            m_links.causes.push_back({EventTable::ncclCall, call, m_row.rank});
            followCall(call, false);
        }
    }

    void followCall(int64_t call, bool addKernel) {
        if (addKernel) {
            Statement query(m_reader.database(),
                            "SELECT kernel_id FROM nccl_call WHERE id = ?1 AND kernel_id IS NOT NULL");
            query.bind(1, call);
            if (query.step()) m_links.effects.push_back({EventTable::kernel, query.integer(0), m_row.rank});
        }
        if (!followCollective(call)) followMessage(call);
    }

    bool followCollective(int64_t call) {
        Statement query(m_reader.database(),
                        "SELECT c.id, c.op, c.bytes, c.last_rank, c.last_arrival_ns - c.first_arrival_ns, "
                        "c.transfer_ns, m.wait_ns, c.members FROM collective_member m JOIN collective c ON c.id = "
                        "m.collective_id WHERE m.rank = ?1 AND m.call_id = ?2");
        query.bind(1, int64_t{m_row.rank}).bind(2, call);
        if (!query.step()) return false;
        std::string sentence = fmt::format("{} of {} ranks", query.text(1), query.integer(7));
        if (!query.isNull(2)) sentence += ", " + text::bytesText(query.real(2));
        if (!query.isNull(4)) sentence += ", arrivals spread over " + durationText(query.integer(4));
        const bool lastKnown = !query.isNull(3);
        const auto last = static_cast<int32_t>(query.integer(3));
        if (lastKnown) sentence += fmt::format(", rank {} last", last);
        if (!query.isNull(6)) sentence += ", this rank waits " + durationText(query.integer(6));
        if (!query.isNull(5)) sentence += ", transfer " + durationText(query.integer(5));
        addSentence(sentence);

        Statement members(m_reader.database(),
                          "SELECT rank, kernel_id FROM collective_member WHERE collective_id = ?1 AND kernel_id IS NOT "
                          "NULL LIMIT ?2");
        members.bind(1, query.integer(0)).bind(2, static_cast<int64_t>(kMaxMembers));
        while (members.step()) {
            const EventLink member{EventTable::kernel, members.integer(1), static_cast<int32_t>(members.integer(0))};
            if (lastKnown && member.rank == last) m_links.lastMember = member;
            if (member.rank != m_row.rank) m_links.members.push_back(member);
        }
        return true;
    }

    void followMessage(int64_t call) {
        Statement query(m_reader.database(),
                        "SELECT p.src_rank, p.dst_rank, p.bytes, p.transfer_ns, s.kernel_id, r.kernel_id, "
                        "p.send_wait_ns, p.recv_wait_ns FROM p2p p LEFT JOIN nccl_call s ON s.id = p.send_call_id LEFT "
                        "JOIN nccl_call r ON r.id = p.recv_call_id WHERE p.send_call_id = ?1 OR p.recv_call_id = ?1");
        query.bind(1, call);
        while (query.step()) {
            const auto source = static_cast<int32_t>(query.integer(0)), target = static_cast<int32_t>(query.integer(1));
            std::string sentence = fmt::format("message from rank {} to rank {}", source, target);
            if (!query.isNull(2)) sentence += ", " + text::bytesText(query.real(2));
            if (!query.isNull(6)) sentence += ", the sender waits " + durationText(query.integer(6));
            if (!query.isNull(7)) sentence += ", the receiver waits " + durationText(query.integer(7));
            if (!query.isNull(3)) sentence += ", transfer " + durationText(query.integer(3));
            addSentence(sentence);
            const bool sends = source == m_row.rank;
            if (!query.isNull(sends ? 5 : 4))
                m_links.members.push_back({EventTable::kernel, query.integer(sends ? 5 : 4), sends ? target : source});
        }
    }

    void addSentence(const std::string& sentence) {
        m_links.sentence += (m_links.sentence.empty() ? "" : "; ") + sentence;
    }

    store::TraceReader& m_reader;
    EventLink m_row;
    EventLinks m_links;
};

}  // namespace

EventLinks findEventLinks(store::TraceReader& reader, const EventLink& row) {
    return LinkFinder(reader, row).find();
}

}  // namespace rankscope::gui
