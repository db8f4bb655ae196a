// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/link_matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "gui/charts/series/chart_job.h"
#include "gui/charts/series/communication_matrix.h"

namespace rankscope::gui {
namespace {

constexpr const char* kLinkRule =
    "Bytes of single transfers of 1 MiB and more by the time that they were on their way: of NCCL's network proxies "
    "between hosts, else of messages. Transfers that share a link share its rate: a row or column that stands out is a "
    "slow card or host. Empty: nothing tells.";

struct Link {
    double bytes = 0, ns = 0;
    int64_t largestBytes = -1;
    ChartTarget largest;
};
using Links = std::map<std::pair<int32_t, int32_t>, Link>;  // by sender and receiver

void take(Link& link, double bytes, double ns, int64_t largestBytes, ChartTarget target) {
    link.bytes += bytes;
    link.ns += ns;
    if (largestBytes <= link.largestBytes) return;
    link.largestBytes = largestBytes;
    link.largest = target;
}

int32_t rankOf(const store::Statement& row, int column) {
    return static_cast<int32_t>(std::clamp<int64_t>(row.integer(column), -1, INT32_MAX));
}

// The bare columns are those of the row with the maximum (SQLite's rule).
void addProxies(store::TraceReader& reader, const ChartJob& job, Links& links) {
    if (!reader.hasTable("proxy_op")) return;
    store::Statement rows(reader.database(),
                          "SELECT rank, communicator_id, peer, total(bytes), total(network_wait_ns), max(bytes), "
                          "call_id, start_ns, dur_ns FROM proxy_op WHERE is_send = 1 AND on_behalf_of IS NULL AND "
                          "bytes >= ?1 AND network_wait_ns > 0 GROUP BY 1, 2, 3");
    rows.bind(1, kLeastLinkBytes);
    while (rows.step()) {
        const auto communicator = job.communicators.find(rows.integer(1));
        const int32_t from = rankOf(rows, 0);
        const int64_t peer = rows.integer(2);
        if (communicator == job.communicators.end() || !job.knows(from) || peer < 0 ||
            peer >= std::ssize(communicator->second.members))
            continue;
        const int32_t to = communicator->second.members[static_cast<size_t>(peer)];
        if (to < 0 || to == from) continue;
        take(links[{from, to}], rows.real(3), rows.real(4), rows.integer(5),
             {rows.isNull(6) ? EventTable::none : EventTable::ncclCall, rows.integer(6), from,
              soundStretch(rows.integer(7), rows.integer(8))});
    }
}

void addMessages(store::TraceReader& reader, const ChartJob& job, Links& links) {
    Links told;
    store::Statement rows(reader.database(),
                          "SELECT src_rank, dst_rank, total(bytes), total(transfer_ns), max(bytes), send_call_id, "
                          "send_arrival_ns, send_end_ns FROM p2p WHERE bytes >= ?1 AND transfer_ns > 0 GROUP BY 1, 2");
    rows.bind(1, kLeastLinkBytes);
    while (rows.step()) {
        const int32_t from = rankOf(rows, 0), to = rankOf(rows, 1);
        if (from == to || !job.knows(from) || !job.knows(to)) continue;
        take(told[{from, to}], rows.real(2), rows.real(3), rows.integer(4),
             {rows.isNull(5) ? EventTable::none : EventTable::ncclCall, rows.integer(5), from,
              soundRange(rows.integer(6), rows.integer(7))});
    }
    links.merge(told);  // leaves what is there
}

}  // namespace

GridChart linkMatrix(store::TraceReader& reader) {
    GridChart chart;
    chart.note = kLinkRule;
    chart.valueTitle = "bandwidth";
    chart.quantity = Quantity::bytesPerNs;
    const ChartJob job = readChartJob(reader);
    Links links;
    addProxies(reader, job, links);
    addMessages(reader, job, links);
    if (links.empty()) {
        chart.nothing =
            "Nothing tells how fast single links are: that takes sends between two ranks, or transfers between hosts "
            "as NCCL's profiler plugin tells them.";
        return chart;
    }
    const CellMap cells(job.ranks.size(), kMostMatrixCells);
    chart.columns = numberedAxis("to rank", "rank", job.ranks, cells);
    chart.rows = numberedAxis("from rank", "rank", job.ranks, cells);
    chart.values.assign(cells.cells() * cells.cells(), GridChart::kNothing);
    auto targets = std::make_shared<std::vector<ChartTarget>>(chart.values.size());
    float low = INFINITY, high = 0;
    for (const auto& [ends, link] : links) {
        const auto rate = static_cast<float>(std::min(link.bytes / link.ns, 3e38));
        low = std::min(low, rate);
        high = std::max(high, rate);
        const size_t cell =
            cells.cellOf(job.indexOf.at(ends.first)) * cells.cells() + cells.cellOf(job.indexOf.at(ends.second));
        float& shown = chart.values[cell];
        if (!std::isnan(shown) && rate >= shown) continue;
        shown = rate;
        (*targets)[cell] = link.largest;
    }
    // Links of hosts are some times as fast as those between them.
    chart.scale = high > 4 * low ? GridChart::Scale::logarithmic : GridChart::Scale::linear;
    chart.targetOf = [targets, width = cells.cells()](size_t column, size_t row) {
        return (*targets)[row * width + column];
    };
    return chart;
}

}  // namespace rankscope::gui
