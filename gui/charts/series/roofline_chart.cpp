// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/facts/operation.h"
#include "gui/charts/series/chart_job.h"
#include "gui/charts/series/step_table.h"

namespace rankscope::gui {
namespace {

using store::Op;

constexpr size_t kLevels = 2;  // inside a host, between hosts
constexpr std::array<const char*, kLevels> kLevelNames{"links inside a host", "network between hosts"};

struct Moved {
    double bytes = 0;                          // on the bus
    double ceilingNs = 0;                      // time they take at the peak of their links
    double observedBytes = 0, observedNs = 0;  // of those whose transfer time is known
};

class RooflineBuilder {
  public:
    explicit RooflineBuilder(store::TraceReader& reader)
        : m_reader(reader), m_job(readChartJob(reader)), m_steps(readStepTable(reader)) {}

    ScatterChart build() {
        ScatterChart chart;
        chart.xTitle = "compute time per byte on the bus";
        chart.yTitle = "share of the step spent computing";
        chart.xQuantity = Quantity::nsPerByte;
        chart.yQuantity = Quantity::share;
        chart.note =
            "A point is a rank's step. Left of a roof's ridge the links cannot carry the step's bytes in the time the "
            "GPU computes; far below the roof, time is lost to something else. Solid roof: peak of the links. Dashed: "
            "mean bandwidth seen.";
        chart.nothing = m_steps.rows.empty()    ? "No steps are known in this recording."
                        : !m_steps.isAnalyzed() ? "Compute time per step is not known yet: rankscope analyze NAME."
                                                : "";
        if (!chart.nothing.empty()) return chart;
        m_bytes.assign(m_steps.rows.size(), {});
        addCollectives();
        addSends();
        addPoints(chart);
        if (chart.points.empty()) chart.nothing = "No collective or send with a known size lies in an analysed step.";
        return chart;
    }

  private:
    static size_t levelOf(int nodes) { return nodes > 1 ? 1 : 0; }

    void count(Op op, int size, int nodes, int smallestNode, double busBytes, double observedNs, double observedBytes,
               size_t members) {
        Moved& moved = m_moved[levelOf(nodes)];
        const auto times = static_cast<double>(members);
        const auto ceiling = m_job.ceiling(op, size, nodes, smallestNode);
        moved.bytes += busBytes * times;
        moved.ceilingNs += ceiling ? busBytes / *ceiling * times : NAN;
        moved.observedBytes += observedBytes * times;
        moved.observedNs += observedNs * times;
    }

    void addCollectives() {
        store::Statement rows(
            m_reader.database(),
            "SELECT communicator_id, step, op, total(bytes), total(transfer_ns), total(CASE WHEN transfer_ns > 0 THEN "
            "bytes END) FROM collective WHERE bytes > 0 AND step IS NOT NULL GROUP BY 1, 2, 3");
        while (rows.step()) {
            const auto found = m_job.communicators.find(rows.integer(0));
            const Op op = store::fromText<Op>(rows.text(2));
            if (found == m_job.communicators.end() || found->second.size < 2 || op == Op::unknown) continue;
            const ChartCommunicator& c = found->second;
            const double factor = facts::busFactor(op, c.size);
            const double bytes = rows.real(3) * factor;
            size_t members = 0;
            for (const int32_t rank : c.members) {
                const size_t row = rank < 0 ? m_steps.rows.size() : m_steps.find(rank, rows.integer(1));
                if (row == m_steps.rows.size()) continue;
                m_bytes[row][levelOf(c.nodes)] += bytes;
                ++members;
            }
            count(op, c.size, c.nodes, c.smallestNode, bytes, std::max(0.0, rows.real(4)), rows.real(5) * factor,
                  members);
        }
    }

    void addSends() {
        store::Statement rows(m_reader.database(),
                              "SELECT src_rank, dst_rank, bytes, send_arrival_ns, transfer_ns FROM p2p WHERE bytes > 0 "
                              "AND send_arrival_ns IS NOT NULL");
        while (rows.step()) {
            const auto source = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(0), -1, INT32_MAX));
            const auto destination = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(1), -1, INT32_MAX));
            const size_t row = m_steps.at(source, rows.integer(3));
            if (row == m_steps.rows.size() || !m_job.knows(destination)) continue;
            const int nodes = m_job.sameHost(source, destination) ? 1 : 2;
            const auto bytes = static_cast<double>(rows.integer(2));
            const double timeNs = rows.isNull(4) ? 0 : static_cast<double>(std::max<int64_t>(0, rows.integer(4)));
            m_bytes[row][levelOf(nodes)] += bytes;
            count(Op::send, 2, nodes, 1, bytes, timeNs, timeNs > 0 ? bytes : 0, 1);
        }
    }

    void addPoints(ScatterChart& chart) {
        for (size_t level = 0; level < kLevels; ++level) {
            if (!(m_moved[level].bytes > 0)) continue;
            const int series = static_cast<int>(chart.series.size());
            PointCollector points(true);
            double least = INFINITY, most = 0;
            for (size_t i = 0; i < m_steps.rows.size(); ++i) {
                const StepRow& row = m_steps.rows[i];
                if (row.warmUp || !row.computeNs || row.durNs <= 0 || *row.computeNs <= 0 || !(m_bytes[i][level] > 0))
                    continue;
                const double x = static_cast<double>(*row.computeNs) / m_bytes[i][level];
                points.add(series, x, static_cast<double>(*row.computeNs) / static_cast<double>(row.durNs),
                           row.target());
                least = std::min(least, x);
                most = std::max(most, x);
            }
            const auto placed = points.points();
            if (placed.empty()) continue;
            chart.series.emplace_back(kLevelNames[level]);
            chart.points.insert(chart.points.end(), placed.begin(), placed.end());
            const Moved& moved = m_moved[level];
            if (moved.ceilingNs > 0)
                chart.lines.push_back(roof("peak", moved.bytes / moved.ceilingNs, series, false, least, most));
            if (moved.observedNs > 0)
                chart.lines.push_back(roof("seen", moved.observedBytes / moved.observedNs, series, true, least, most));
        }
    }

    static ScatterLine roof(const char* what, double bytesPerNs, int series, bool dashed, double least, double most) {
        const double ridge = 1 / bytesPerNs, from = std::min(least, ridge) / 4, to = std::max(most, ridge) * 4;
        return {fmt::format("{} {}, ridge {}", what, quantityText(Quantity::bytesPerNs, bytesPerNs),
                            quantityText(Quantity::nsPerByte, ridge)),
                series,
                dashed,
                {{from, from * bytesPerNs}, {ridge, 1}, {to, 1}}};
    }

    store::TraceReader& m_reader;
    ChartJob m_job;
    StepTable m_steps;
    std::vector<std::array<double, kLevels>> m_bytes;  // as m_steps.rows
    std::array<Moved, kLevels> m_moved;
};

}  // namespace

ScatterChart rooflineChart(store::TraceReader& reader) {
    return RooflineBuilder(reader).build();
}

}  // namespace rankscope::gui
