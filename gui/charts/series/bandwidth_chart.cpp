// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/bandwidth_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "analyzer/costs/cost_fit.h"
#include "analyzer/facts/operation.h"
#include "gui/charts/series/chart_job.h"
#include "gui/timeline/display_text.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

using store::Op;

constexpr size_t kMostSeries = 7;        // colours that can be told apart
constexpr size_t kFitSamples = 100'000;  // per series: more do not move a median
constexpr int kCurvePoints = 96;

struct Series {
    Op op = Op::unknown;
    int size = 0, nodes = 1, smallestNode = 1;
    double totalNs = 0;
    double smallest = INFINITY, largest = 0;
    std::set<int64_t> communicators;
    costs::TimesBySize times;
    size_t samples = 0;
    PointCollector points;  // a job repeats the same few messages
};

std::string words(Op op) {
    std::string text(store::toText(op));
    if (store::isP2p(op)) return "send";
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

std::string nameOf(const Series& series) {
    if (store::isP2p(series.op)) return series.nodes > 1 ? "send between hosts" : "send in a host";
    return fmt::format("{} of {}{}", words(series.op), series.size,
                       series.nodes > 1 ? fmt::format(" on {} hosts", series.nodes) : std::string());
}

/// What `rankscope analyze` found of an operation on a communicator: the report's start-up and the chart's are one
/// number.
struct KnownFit {
    costs::CostLine line;
    std::optional<double> ceiling;  // bytes per ns
    bool isFit = false;             // else the ceiling's rate was taken for granted
    std::string group;
};

std::map<std::pair<int64_t, Op>, KnownFit> readFits(store::TraceReader& reader) {
    std::map<std::pair<int64_t, Op>, KnownFit> fits;
    if (!reader.hasTable("cost_fit")) return fits;
    store::Statement rows(reader.database(),
                          "SELECT communicator_id, op, alpha_ns, beta_ns_per_byte, ceiling_bytes_per_ns, source, "
                          "group_name FROM cost_fit");
    while (rows.step()) {
        const std::string source(rows.text(5));
        KnownFit fit{{rows.real(2), rows.real(3), source}, {}, source == "fit", displayText(rows.text(6), 60)};
        const auto usable = [](double value) { return std::isfinite(value) && value >= 0; };
        if (!usable(fit.line.alphaNs) || !usable(fit.line.betaNsPerByte)) continue;
        if (!rows.isNull(4) && usable(rows.real(4)) && rows.real(4) > 0) fit.ceiling = rows.real(4);
        fits.emplace(std::pair(rows.integer(0), store::fromText<Op>(rows.text(1))), std::move(fit));
    }
    return fits;
}

class BandwidthBuilder {
  public:
    explicit BandwidthBuilder(store::TraceReader& reader)
        : m_reader(reader), m_job(readChartJob(reader)), m_fits(readFits(reader)) {}

    ScatterChart build() {
        readCollectives();
        readSends();
        ScatterChart chart;
        chart.xTitle = "message size";
        chart.yTitle = "bus bandwidth";
        chart.xQuantity = Quantity::bytes;
        chart.yQuantity = Quantity::bytesPerNs;
        chart.note =
            "Bus bandwidth as nccl-tests count it, from the transfer time: last arrival to end. Solid: start-up + "
            "bytes / bandwidth, fitted; where the sizes differ by less than a factor of 4 start-up alone is. Dashed: "
            "what the links can do.";
        if (m_series.empty()) {
            chart.nothing = "No collective or send with a known size and transfer time is recorded.";
            return chart;
        }
        addLongest(chart);
        if (!m_job.links.intra && !m_job.links.inter)
            chart.note +=
                " No link peaks are known: rankscope view NAME --links \"intra:gbps=200;inter:gbps=40\" tells them.";
        else
            chart.note += fmt::format(" Links: {}.", displayText(m_job.links.source));
        return chart;
    }

  private:
    using Key = std::tuple<Op, int, int, int>;

    void readCollectives() {
        store::Statement rows(m_reader.database(),
                              "SELECT id, communicator_id, op, bytes, transfer_ns, last_arrival_ns, end_ns, last_rank "
                              "FROM collective WHERE bytes > 0 AND transfer_ns > 0");
        while (rows.step()) {
            const auto found = m_job.communicators.find(rows.integer(1));
            const Op op = store::fromText<Op>(rows.text(2));
            if (found == m_job.communicators.end() || op == Op::unknown || found->second.size < 2) continue;
            const ChartCommunicator& c = found->second;
            Series& series = at({op, c.size, c.nodes, c.smallestNode});
            series.communicators.insert(rows.integer(1));
            const int32_t rank = firstMember(c, rows.isNull(7) ? -1 : rows.integer(7));
            // The collective's number until the members are looked up: only those that are drawn need it.
            ChartTarget target{EventTable::none, rows.integer(0), rank, soundRange(rows.integer(5), rows.integer(6))};
            add(series, static_cast<double>(rows.integer(3)), static_cast<double>(rows.integer(4)), target);
        }
    }

    void readSends() {
        store::Statement rows(m_reader.database(),
                              "SELECT src_rank, dst_rank, bytes, transfer_ns, send_call_id, send_arrival_ns, "
                              "send_end_ns FROM p2p WHERE bytes > 0 AND transfer_ns > 0");
        while (rows.step()) {
            const auto source = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(0), -1, INT32_MAX));
            const auto destination = static_cast<int32_t>(std::clamp<int64_t>(rows.integer(1), -1, INT32_MAX));
            if (!m_job.knows(source) || !m_job.knows(destination)) continue;
            Series& series = at({Op::send, 2, m_job.sameHost(source, destination) ? 1 : 2, 1});
            const ChartTarget target{rows.isNull(4) ? EventTable::none : EventTable::ncclCall, rows.integer(4), source,
                                     soundRange(rows.integer(5), rows.integer(6))};
            add(series, static_cast<double>(rows.integer(2)), static_cast<double>(rows.integer(3)), target);
        }
    }

    Series& at(const Key& key) {
        Series& series = m_series[key];
        std::tie(series.op, series.size, series.nodes, series.smallestNode) = key;
        return series;
    }

    static void add(Series& series, double bytes, double timeNs, const ChartTarget& target) {
        series.totalNs += timeNs;
        series.smallest = std::min(series.smallest, bytes);
        series.largest = std::max(series.largest, bytes);
        if (series.samples++ < kFitSamples) series.times[bytes].push_back(timeNs);
        series.points.add(0, bytes, bytes / timeNs * facts::busFactor(series.op, series.size), target);
    }

    int32_t firstMember(const ChartCommunicator& communicator, int64_t wanted) const {
        if (wanted >= 0 && wanted <= INT32_MAX && m_job.knows(static_cast<int32_t>(wanted)))
            return static_cast<int32_t>(wanted);
        for (const int32_t rank : communicator.members)
            if (rank >= 0) return rank;
        return -1;
    }

    void addLongest(ScatterChart& chart) {
        std::vector<const Series*> order;
        for (const auto& [key, series] : m_series) order.push_back(&series);
        std::sort(order.begin(), order.end(), [](const Series* a, const Series* b) { return a->totalNs > b->totalNs; });
        if (order.size() > kMostSeries) {
            chart.note +=
                fmt::format(" {} kinds of operation that take less time are left out.", order.size() - kMostSeries);
            order.resize(kMostSeries);
        }
        m_member = std::make_unique<store::Statement>(
            m_reader.database(),
            "SELECT kernel_id, call_id FROM collective_member WHERE collective_id = ?1 AND rank = ?2");
        for (const Series* series : order) addSeries(chart, *series);
    }

    void addSeries(ScatterChart& chart, const Series& series) {
        const int number = static_cast<int>(chart.series.size());
        const double factor = facts::busFactor(series.op, series.size);
        chart.series.push_back(nameOf(series));
        for (ScatterPoint point : series.points.points()) {
            point.series = number;
            if (!store::isP2p(series.op)) point.target = eventOf(point.target);
            chart.points.push_back(point);
        }
        const double from = std::max(1.0, series.smallest / 2), to = series.largest * 2;
        const KnownFit* known = fitOf(series);
        const auto reachable = m_job.ceiling(series.op, series.size, series.nodes, series.smallestNode);
        const auto ceiling = known && known->ceiling ? known->ceiling : reachable;  // that the line was made with
        if (known) {
            chart.lines.push_back(curve(known->line,
                                        fmt::format("{}, {}: {}", startUpText(known->line),
                                                    known->isFit ? "fitted" : "at the ceiling's rate", known->group),
                                        number, factor, from, to));
        } else if (const auto line = costs::lineThrough(series.times, series.op, series.size, ceiling);
                   line && line->source != "fit") {
            chart.lines.push_back(
                curve(*line, fmt::format("{} at the ceiling's rate", startUpText(*line)), number, factor, from, to));
        } else if (line) {
            const std::string perByte = line->betaNsPerByte > 0
                                            ? quantityText(Quantity::bytesPerNs, factor / line->betaNsPerByte)
                                            : "no cost per byte";
            chart.lines.push_back(
                curve(*line, fmt::format("fit: {}, {}", startUpText(*line), perByte), number, factor, from, to));
        }
        if (const auto top = reachable ? reachable : ceiling)
            chart.lines.push_back({fmt::format("ceiling {}", quantityText(Quantity::bytesPerNs, *top)),
                                   number,
                                   true,
                                   {{from, *top}, {to, *top}}});
    }

    /// Of the first of its communicators, as findings are; nothing before `rankscope analyze` has been here.
    const KnownFit* fitOf(const Series& series) const {
        for (const int64_t communicator : series.communicators)
            if (const auto known = m_fits.find({communicator, series.op}); known != m_fits.end()) return &known->second;
        return nullptr;
    }

    static std::string startUpText(const costs::CostLine& line) {
        return "start-up " + durationText(std::llround(std::min(line.alphaNs, 1e18)));
    }

    static ScatterLine curve(const costs::CostLine& cost, std::string name, int series, double factor, double from,
                             double to) {
        ScatterLine line{std::move(name), series, false, {}};
        for (int i = 0; i <= kCurvePoints; ++i) {
            const double bytes = from * std::pow(to / from, static_cast<double>(i) / kCurvePoints);
            if (const double time = cost.timeNs(bytes); time > 0)
                line.points.emplace_back(bytes, bytes / time * factor);
        }
        return line;
    }

    ChartTarget eventOf(ChartTarget target) {
        m_member->reset();
        m_member->bind(1, target.rowId).bind(2, int64_t{target.rank});
        if (!m_member->step()) return {EventTable::none, 0, target.rank, target.range};
        if (!m_member->isNull(0)) return {EventTable::kernel, m_member->integer(0), target.rank, target.range};
        if (!m_member->isNull(1)) return {EventTable::ncclCall, m_member->integer(1), target.rank, target.range};
        return {EventTable::none, 0, target.rank, target.range};
    }

    store::TraceReader& m_reader;
    ChartJob m_job;
    std::map<std::pair<int64_t, Op>, KnownFit> m_fits;
    std::map<Key, Series> m_series;
    std::unique_ptr<store::Statement> m_member;
};

}  // namespace

ScatterChart bandwidthChart(store::TraceReader& reader) {
    return BandwidthBuilder(reader).build();
}

}  // namespace rankscope::gui
