// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/step_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace rankscope::gui {
namespace {

std::vector<int32_t> distinct(const StepTable& steps, int32_t StepRow::*member) {
    std::vector<int32_t> values;
    values.reserve(steps.rows.size());
    for (const StepRow& row : steps.rows) values.push_back(row.*member);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

size_t indexIn(const std::vector<int32_t>& sorted, int32_t value) {
    return static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
}

bool isCompared(StepMeasure measure) {
    return measure == StepMeasure::own || measure == StepMeasure::compute;
}

// What is measured, in ns.
std::optional<double> measuredNs(const StepRow& row, StepMeasure measure) {
    switch (measure) {
        case StepMeasure::own:
            return row.waitNs ? std::optional(static_cast<double>(row.durNs) - static_cast<double>(*row.waitNs))
                              : std::nullopt;
        case StepMeasure::compute:
            return row.computeNs ? std::optional(static_cast<double>(*row.computeNs)) : std::nullopt;
        case StepMeasure::waiting:
            return row.waitNs ? std::optional(static_cast<double>(*row.waitNs)) : std::nullopt;
        case StepMeasure::duration:
            return static_cast<double>(row.durNs);
    }
    return std::nullopt;
}

double lowerMedian(std::vector<double>& values) {
    if (values.empty()) return 0;
    // The lower middle: with two ranks the faster one is what the other could be.
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::vector<double> medianPerStep(const StepTable& steps, const std::vector<int32_t>& numbers, StepMeasure measure) {
    std::vector<std::vector<double>> times(numbers.size());
    for (const StepRow& row : steps.rows)
        if (const auto ns = measuredNs(row, measure)) times[indexIn(numbers, row.step)].push_back(*ns);
    std::vector<double> medians;
    for (auto& values : times) medians.push_back(lowerMedian(values));
    return medians;
}

// By the step's number and the stage.
using PeerMedians = std::map<std::pair<int32_t, int32_t>, double>;

PeerMedians mediansOfPeers(const StepTable& steps, StepMeasure measure) {
    std::map<std::pair<int32_t, int32_t>, std::vector<double>> times;
    for (const StepRow& row : steps.rows)
        if (const auto ns = measuredNs(row, measure)) times[{row.step, steps.stageOf(row.rank)}].push_back(*ns);
    PeerMedians medians;
    for (auto& [of, values] : times) medians[of] = lowerMedian(values);
    return medians;
}

float valueOf(const StepRow& row, StepMeasure measure, const StepTable& steps, const PeerMedians& medians) {
    const auto ns = measuredNs(row, measure);
    if (!ns) return GridChart::kNothing;
    if (!isCompared(measure)) return static_cast<float>(*ns);
    const double median = medians.at({row.step, steps.stageOf(row.rank)});
    return median > 0 ? static_cast<float>(*ns / median - 1) : GridChart::kNothing;
}

void describe(StepMeasure measure, GridChart& chart) {
    chart.quantity = isCompared(measure) ? Quantity::share : Quantity::nanoseconds;
    chart.scale = isCompared(measure) ? GridChart::Scale::diverging : GridChart::Scale::linear;
    switch (measure) {
        case StepMeasure::own:
            chart.valueTitle = "own time against the median rank";
            chart.note =
                "Own time is the step without waiting for other ranks. Orange in every step: a straggler, more work, "
                "or "
                "a slow link (its compute time is as its peers' then). Orange in single steps: a stall that all others "
                "wait for.";
            break;
        case StepMeasure::compute:
            chart.valueTitle = "compute time against the median rank";
            chart.note =
                "A rank that stays orange computes longer than the others in every step: a straggler, or more work.";
            break;
        case StepMeasure::waiting:
            chart.valueTitle = "waiting for other ranks";
            chart.note =
                "Time in which a GPU has nothing to do but wait for another rank: a straggler itself waits least.";
            break;
        case StepMeasure::duration:
            chart.valueTitle = "step time";
            chart.note =
                "Bars: the median rank's step time, step by step. Ranks that wait for each other all take as long as "
                "the slowest: look at compute time to see which it is.";
            break;
    }
}

// Tukey's outer fences (Exploratory Data Analysis, 1977): three times the spread of the middle half beyond it. Of few
// values there is no middle half to speak of: all of them are within.
std::pair<double, double> outerFences(std::vector<double> values) {
    constexpr size_t kFewest = 16;  // four to a quarter
    if (values.size() < kFewest) return {-INFINITY, INFINITY};
    std::sort(values.begin(), values.end());
    const double first = values[values.size() / 4], third = values[3 * (values.size() - 1) / 4];
    return {first - 3 * (third - first), third + 3 * (third - first)};
}

// Bins as wide as a round number, so that their edges can be read; at most kHistogramBins. What lies beyond [low, high]
// has a bin of its own at that end: a single long step must not squeeze all others into a few bins.
struct BinAxis {
    double firstNs = 0, widthNs = 1;
    size_t bins = 1;  // those at the ends included
    bool isOpenBelow = false, isOpenAbove = false;

    BinAxis(double low, double high, double least, double most) : isOpenBelow(least < low), isOpenAbove(most > high) {
        const size_t ends = static_cast<size_t>(isOpenBelow) + static_cast<size_t>(isOpenAbove);
        const auto edges = axisTicks(low, high, false, kHistogramBins - 2 - ends);
        widthNs = edges.size() > 1 ? edges[1] - edges[0] : std::max(1.0, high - low);
        firstNs = std::floor(low / widthNs) * widthNs - (isOpenBelow ? widthNs : 0);
        const size_t upTo = static_cast<size_t>((high - firstNs) / widthNs) + 1 + (isOpenAbove ? 1 : 0);
        bins = std::clamp<size_t>(upTo, 1, kHistogramBins);
    }
    size_t binOf(double ns) const {
        return std::min(bins - 1, static_cast<size_t>(std::max(0.0, (ns - firstNs) / widthNs)));
    }
    std::string label(size_t bin) const {
        if (isOpenBelow && bin == 0) return "less than " + text(1);
        if (isOpenAbove && bin + 1 == bins) return text(bin) + " and more";
        return fmt::format("{} to {}", text(bin), text(bin + 1));
    }
    std::string tick(size_t bin) const {
        return isOpenBelow && bin == 0 ? "< " + text(1) : isOpenAbove && bin + 1 == bins ? "> " + text(bin) : text(bin);
    }

  private:
    // Lower edge, with as many decimals as tell neighbours apart.
    std::string text(size_t bin) const {
        constexpr std::pair<double, const char*> kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
        const double ns = firstNs + widthNs * static_cast<double>(bin),
                     last = firstNs + widthNs * static_cast<double>(bins);
        const auto unit =
            std::find_if(std::begin(kUnits), std::end(kUnits) - 1, [&](const auto& u) { return last >= u.first; });
        const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(widthNs / unit->first) - 1e-9)), 0, 9);
        return fmt::format("{:.{}f} {}", ns / unit->first, decimals, unit->second);
    }
};

std::string cutNote(const StepTable& steps) {
    return steps.cut ? fmt::format(" Only the first {} steps of ranks are shown.", steps.rows.size()) : std::string();
}

}  // namespace

GridChart stragglerMap(const StepTable& steps, StepMeasure measure) {
    GridChart chart;
    describe(measure, chart);
    const std::vector<int32_t> ranks = distinct(steps, &StepRow::rank), numbers = distinct(steps, &StepRow::step);
    if (steps.rows.empty())
        chart.nothing = "No steps are known in this recording: mark them with NVTX ranges, or see loss in the report.";
    else if (measure != StepMeasure::duration && !steps.isAnalyzed())
        chart.nothing = "Where the time of the steps goes is not known yet: rankscope analyze NAME.";
    else if (measure != StepMeasure::duration && ranks.size() == 1)
        chart.nothing = "One rank: there is nobody to compare it with.";
    if (!chart.nothing.empty()) return chart;
    const CellMap rows(ranks.size(), kMostMapRows), columns(numbers.size(), kMostMapColumns);
    chart.note += cutNote(steps);
    chart.rows = numberedAxis("rank", "rank", ranks, rows);
    chart.columns = numberedAxis("step", "step", numbers, columns);
    chart.values.assign(rows.cells() * columns.cells(), GridChart::kNothing);
    const PeerMedians peers = isCompared(measure) ? mediansOfPeers(steps, measure) : PeerMedians();
    if (isCompared(measure) && !steps.stages.empty()) chart.note += " Each is compared with the ranks of its stage.";
    std::vector<ChartTarget> targets(chart.values.size());
    for (const StepRow& row : steps.rows) {
        const size_t number = indexIn(numbers, row.step);
        const float value = valueOf(row, measure, steps, peers);
        const size_t cell = rows.cellOf(indexIn(ranks, row.rank)) * columns.cells() + columns.cellOf(number);
        float& shown = chart.values[cell];
        if (std::isnan(value) || (!std::isnan(shown) && std::fabs(value) <= std::fabs(shown))) continue;
        shown = value;
        targets[cell] = row.target();
    }
    // The series of all ranks above the map of each.
    if (measure == StepMeasure::duration) {
        const std::vector<double> medians = medianPerStep(steps, numbers, measure);
        chart.columnTotals.assign(columns.cells(), 0);
        for (size_t number = 0; number < numbers.size(); ++number) {
            double& bar = chart.columnTotals[columns.cellOf(number)];
            bar = std::max(bar, medians[number]);
        }
    }
    chart.targetOf = [targets = std::move(targets), width = columns.cells()](size_t column, size_t row) {
        return targets[row * width + column];
    };
    return chart;
}

GridChart stepHistogram(const StepTable& steps) {
    GridChart chart;
    chart.valueTitle = "steps";
    chart.note =
        "How many steps of each rank took how long; all ranks together above. Warm-up steps are left out. One beyond "
        "the outer fences (3 "
        "times the spread of the middle half) is counted at that end. Step by step: Stragglers, step time." +
        cutNote(steps);
    const std::vector<int32_t> ranks = distinct(steps, &StepRow::rank);
    std::vector<double> times;
    for (const StepRow& row : steps.rows)
        if (!row.warmUp) times.push_back(static_cast<double>(row.durNs));
    if (steps.rows.empty())
        chart.nothing = "No steps are known in this recording: mark them with NVTX ranges, or see loss in the report.";
    else if (times.empty())
        chart.nothing = "All steps are warm-up.";
    if (!chart.nothing.empty()) return chart;
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    const auto [below, above] = outerFences(times);
    double low = std::max(*least, below), high = std::min(*most, above);
    // Steps that differ by less than 2 % are alike: an axis that narrow would blow up their noise.
    const double narrowest = std::max(0.02 * high, 1.0);
    if (high - low < narrowest) {
        const double middle = (low + high) / 2;
        low = std::max(0.0, middle - narrowest / 2);
        high = low + narrowest;
    }
    const BinAxis axis(low, high, *least, *most);
    const CellMap rows(ranks.size(), kMostMapRows);
    chart.rows = numberedAxis("rank", "rank", ranks, rows);
    chart.columns.title = "step time";
    for (size_t bin = 0; bin < axis.bins; ++bin) {
        chart.columns.ticks.push_back(axis.tick(bin));
        chart.columns.labels.push_back(axis.label(bin));
    }
    chart.values.assign(rows.cells() * axis.bins, GridChart::kNothing);
    chart.columnTotals.assign(axis.bins, 0);
    std::vector<ChartTarget> targets(chart.values.size());
    for (const StepRow& row : steps.rows) {
        if (row.warmUp) continue;
        const size_t bin = axis.binOf(static_cast<double>(row.durNs));
        const size_t cell = rows.cellOf(indexIn(ranks, row.rank)) * axis.bins + bin;
        if (std::isnan(chart.values[cell])) {
            chart.values[cell] = 0;
            targets[cell] = row.target();
        }
        ++chart.values[cell];
        ++chart.columnTotals[bin];
    }
    chart.targetOf = [targets = std::move(targets), bins = axis.bins](size_t column, size_t row) {
        return targets[row * bins + column];
    };
    return chart;
}

}  // namespace rankscope::gui
