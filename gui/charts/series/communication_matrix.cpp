// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/communication_matrix.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "gui/charts/series/message_pairs.h"

namespace rankscope::gui {
namespace {

using store::Op;

constexpr const char* kRule =
    "Bytes each rank owes each other by the operations themselves, over the whole recording: of B bytes on P ranks an "
    "all-reduce 2B/P, all-gather, reduce-scatter and all-to-all B/P, sends B. NCCL's rings carry the same sum between "
    "neighbours.";

// The largest collective of a communicator, to jump to.
struct Largest {
    double bytesPerPair = 0;
    std::map<int32_t, ChartTarget> on;
};

struct Targets {
    std::vector<int32_t> ranks;
    size_t perCell = 1;
    std::vector<std::pair<std::vector<size_t>, Largest>> collectives;  // cells of the members, sorted
    MessagePairs pairs;
};

class MatrixBuilder {
  public:
    explicit MatrixBuilder(store::TraceReader& reader)
        : m_reader(reader), m_job(readChartJob(reader)), m_cells(m_job.ranks.size(), kMostMatrixCells) {
        m_targets->ranks = m_job.ranks;
        m_targets->perCell = m_cells.perCell;
    }

    GridChart build() {
        m_bytes.assign(m_cells.cells() * m_cells.cells(), 0);
        addCollectives();
        addRooted();
        m_targets->pairs = readMessagePairs(m_reader, m_job);
        for (const auto& [who, pair] : m_targets->pairs)
            cell(m_job.indexOf.at(who.first), m_job.indexOf.at(who.second)) += pair.bytes;
        return chart();
    }

  private:
    double& cell(size_t from, size_t to) {
        return m_bytes[m_cells.cellOf(from) * m_cells.cells() + m_cells.cellOf(to)];
    }

    // Recorded members in each cell they fall in.
    std::vector<std::pair<size_t, double>> cellsOf(const ChartCommunicator& communicator) const {
        std::map<size_t, double> counts;
        for (const int32_t rank : communicator.members)
            if (rank >= 0) counts[m_cells.cellOf(m_job.indexOf.at(rank))] += 1;
        return {counts.begin(), counts.end()};
    }

    void addEvenly(const ChartCommunicator& communicator, double bytesPerPair) {
        const auto cells = cellsOf(communicator);
        for (const auto& [from, senders] : cells)
            for (const auto& [to, receivers] : cells)
                m_bytes[from * m_cells.cells() + to] +=
                    bytesPerPair * senders * (from == to ? receivers - 1 : receivers);
    }

    // total() does not overflow as sum() would on a damaged file.
    void addCollectives() {
        std::map<int64_t, double> perPair;
        store::Statement sums(
            m_reader.database(),
            "SELECT communicator_id, op, total(bytes) FROM collective WHERE bytes > 0 AND op IN ('all_reduce', "
            "'all_gather', 'reduce_scatter', 'all_to_all') GROUP BY communicator_id, op");
        while (sums.step()) {
            const auto found = m_job.communicators.find(sums.integer(0));
            if (found == m_job.communicators.end() || found->second.size < 2) continue;
            perPair[found->first] +=
                sums.real(2) * (store::fromText<Op>(sums.text(1)) == Op::allReduce ? 2 : 1) / found->second.size;
        }
        for (const auto& [id, bytes] : perPair) addEvenly(m_job.communicators.at(id), bytes);
        // The bare column `id` is that of the row with the maximum (SQLite's rule).
        store::Statement largest(m_reader.database(),
                                 "SELECT communicator_id, id, max(bytes) FROM collective GROUP BY communicator_id");
        while (largest.step())
            if (const auto found = perPair.find(largest.integer(0)); found != perPair.end())
                addLargest(found->first, largest.integer(1), found->second);
    }

    void addLargest(int64_t communicator, int64_t collective, double bytesPerPair) {
        store::Statement members(
            m_reader.database(),
            "SELECT rank, kernel_id, call_id, arrival_ns, end_ns FROM collective_member WHERE collective_id = ?1");
        members.bind(1, collective);
        Largest largest{bytesPerPair, {}};
        while (members.step()) {
            const auto rank = static_cast<int32_t>(std::clamp<int64_t>(members.integer(0), -1, INT32_MAX));
            ChartTarget target{EventTable::none, 0, rank, soundRange(members.integer(3), members.integer(4))};
            if (!members.isNull(1)) {
                target.table = EventTable::kernel;
                target.rowId = members.integer(1);
            } else if (!members.isNull(2)) {
                target.table = EventTable::ncclCall;
                target.rowId = members.integer(2);
            }
            if (m_job.knows(rank)) largest.on.emplace(rank, target);
        }
        std::vector<size_t> cells;
        for (const auto& [at, count] : cellsOf(m_job.communicators.at(communicator))) cells.push_back(at);
        if (!largest.on.empty()) m_targets->collectives.emplace_back(std::move(cells), std::move(largest));
    }

    // The root stands in the calls only; that of the lowest recorded member is as good as any.
    void addRooted() {
        store::Statement sums(
            m_reader.database(),
            "SELECT c.communicator_id, c.op, n.peer, total(c.bytes) FROM collective c LEFT JOIN collective_member m ON "
            "m.collective_id = c.id AND m.rank = (SELECT min(rank) FROM collective_member WHERE collective_id = c.id) "
            "LEFT JOIN nccl_call n ON n.id = m.call_id WHERE c.bytes > 0 AND c.op IN ('broadcast', 'reduce', 'gather', "
            "'scatter') GROUP BY 1, 2, 3");
        while (sums.step()) {
            const auto found = m_job.communicators.find(sums.integer(0));
            if (found == m_job.communicators.end() || found->second.size < 2) continue;
            const ChartCommunicator& communicator = found->second;
            const Op op = store::fromText<Op>(sums.text(1));
            const int64_t peer = sums.isNull(2) ? -1 : sums.integer(2);
            const int32_t root = peer >= 0 && peer < static_cast<int64_t>(communicator.members.size())
                                     ? communicator.members[static_cast<size_t>(peer)]
                                     : -1;
            if (root < 0) {
                addEvenly(communicator, sums.real(3) / communicator.size);
                continue;
            }
            const double bytes =
                op == Op::broadcast || op == Op::reduce ? sums.real(3) : sums.real(3) / communicator.size;
            const bool toRoot = op == Op::reduce || op == Op::gather;
            for (const int32_t rank : communicator.members) {
                if (rank < 0 || rank == root) continue;
                const size_t from = m_job.indexOf.at(toRoot ? rank : root), to = m_job.indexOf.at(toRoot ? root : rank);
                cell(from, to) += bytes;
            }
        }
    }

    GridChart chart() {
        GridChart chart;
        chart.note = kRule;
        chart.valueTitle = "bytes";
        chart.quantity = Quantity::bytes;
        if (m_job.ranks.size() < 2)
            chart.nothing = "One rank: nobody to communicate with.";
        else if (std::none_of(m_bytes.begin(), m_bytes.end(), [](double bytes) { return bytes > 0; }))
            chart.nothing = "No collective or send with a known size is recorded between these ranks.";
        if (!chart.nothing.empty()) return chart;
        chart.columns = numberedAxis("to rank", "rank", m_job.ranks, m_cells);
        chart.rows = numberedAxis("from rank", "rank", m_job.ranks, m_cells);
        double low = INFINITY, high = 0;
        for (const double bytes : m_bytes) {
            chart.values.push_back(bytes > 0 ? static_cast<float>(std::min(bytes, 3e38)) : GridChart::kNothing);
            if (bytes > 0) low = std::min(low, bytes);
            high = std::max(high, bytes);
        }
        // Tensor-parallel groups move a hundred times the bytes of the others: on a linear scale these would vanish.
        chart.scale = high > 20 * low ? GridChart::Scale::logarithmic : GridChart::Scale::linear;
        chart.targetOf = [targets = std::shared_ptr<const Targets>(m_targets)](size_t column, size_t row) {
            return targetOf(*targets, column, row);
        };
        return chart;
    }

    static ChartTarget targetOf(const Targets& targets, size_t column, size_t row) {
        ChartTarget best;
        double most = 0;
        const auto has = [](const std::vector<size_t>& cells, size_t cell) {
            return std::binary_search(cells.begin(), cells.end(), cell);
        };
        for (const auto& [cells, largest] : targets.collectives) {
            if (largest.bytesPerPair <= most || !has(cells, column) || !has(cells, row)) continue;
            const auto on = largest.on.lower_bound(targets.ranks[row * targets.perCell]);
            best = on != largest.on.end() ? on->second : largest.on.begin()->second;
            most = largest.bytesPerPair;
        }
        for (size_t from = row * targets.perCell; from < std::min(targets.ranks.size(), (row + 1) * targets.perCell);
             ++from) {
            for (size_t to = column * targets.perCell;
                 to < std::min(targets.ranks.size(), (column + 1) * targets.perCell); ++to) {
                const auto pair = targets.pairs.find({targets.ranks[from], targets.ranks[to]});
                if (pair == targets.pairs.end() || pair->second.bytes <= most) continue;
                best = pair->second.largest;
                most = pair->second.bytes;
            }
        }
        return best;
    }

    store::TraceReader& m_reader;
    ChartJob m_job;
    CellMap m_cells;
    std::vector<double> m_bytes;
    std::shared_ptr<Targets> m_targets = std::make_shared<Targets>();  // outlives the builder in GridChart::targetOf
};

}  // namespace

GridChart communicationMatrix(store::TraceReader& reader) {
    return MatrixBuilder(reader).build();
}

}  // namespace rankscope::gui
