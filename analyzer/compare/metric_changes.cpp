// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/distributions.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/step_time.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using facts::mean;

/// A metric's values over the runs that have it.
struct Samples {
    MetricValue first;
    std::vector<double> base, now;
};

void gather(const std::vector<RunSummary>& runs, std::vector<double> Samples::*side, std::vector<Samples>& all,
            std::map<std::string, size_t>& index) {
    for (const RunSummary& run : runs) {
        for (const MetricValue& metric : metricsOf(run)) {
            if (!std::isfinite(metric.value)) continue;
            const auto [at, isNew] = index.try_emplace(metric.name, all.size());
            if (isNew) all.push_back({metric, {}, {}});
            (all[at->second].*side).push_back(metric.value);
        }
    }
}

/// Returns what a change is measured by: the step for times, the whole for shares, itself for others.
double scaleOf(const Samples& samples, double stepNs) {
    const std::string unit = samples.first.unit;
    if (unit == "ns") return stepNs;
    if (unit == "share") return 1;
    return std::max(std::abs(mean(samples.base)), std::abs(mean(samples.now)));
}

void compare(const Samples& samples, double scale, MetricChange& change, double& p) {
    change.delta = *change.now - *change.base;
    const DifferenceNoise noise = noiseOf(sideOf(samples.base), sideOf(samples.now), kNoiseFloor * scale);
    if (noise.degrees < 1 || noise.error <= 0) return;
    change.interval =
        facts::Estimate::around(*change.delta, facts::studentTwoSided(kConfidence, noise.degrees) * noise.error);
    change.test = "t";
    p = facts::studentOutside(std::abs(*change.delta) / noise.error, noise.degrees);
}

double roleMean(const RunSummary& run, double RoleSummary::*part) {
    double sum = 0;
    for (const RoleSummary& role : run.roles) sum += role.*part;
    return run.roles.empty() ? 0 : sum / static_cast<double>(run.roles.size());
}

void addSteps(const RunSummary& run, std::vector<MetricValue>& values) {
    if (run.stepsNs.empty()) return;
    const double mean = locate(run.stepsNs, StepEstimator::mean).value;
    values.push_back({"mean step", "ns", false, false, mean});
    values.push_back({"throughput", "steps/s", true, false, 1e9 / mean});
    if (const auto slow = run.stepsPerSample > 1 ? run.slowStepNs : slowStepOf(run.stepsNs))
        values.push_back({"95th percentile of steps", "ns", false, false, *slow});
}

void addCategories(const RunSummary& run, std::vector<MetricValue>& values) {
    const auto add = [&](const char* name, double RoleSummary::*part) {
        values.push_back({name, "ns", false, true, roleMean(run, part)});
    };
    const double wait = roleMean(run, &RoleSummary::exposedWaitNs),
                 transfer = roleMean(run, &RoleSummary::exposedTransferNs),
                 overlapped = roleMean(run, &RoleSummary::overlappedCommNs);
    add("compute", &RoleSummary::computeNs);
    values.push_back({"exposed communication", "ns", false, true, wait + transfer});
    add("waiting for other ranks", &RoleSummary::exposedWaitNs);
    add("exposed transfer", &RoleSummary::exposedTransferNs);
    if (const double all = wait + transfer + overlapped; all > 0)
        values.push_back({"overlap of communication", "share", true, true, overlapped / all});
    add("copies and sets", &RoleSummary::memoryNs);
    add("idle", &RoleSummary::idleNs);
    std::map<std::string, double> byCause;  // over ranks
    for (const RoleSummary& role : run.roles)
        for (const auto& [cause, ns] : role.idleByCauseNs) byCause[cause] += ns;
    for (const auto& [cause, sum] : byCause) {
        std::string name = "idle: " + cause;
        std::ranges::replace(name, '_', ' ');
        values.push_back({name, "ns", false, true, sum / static_cast<double>(run.roles.size())});
    }
}

/// Adds what the ranks of a pipeline are idle or wait to receive, as a share of the step.
void addBubble(const RunSummary& run, std::vector<MetricValue>& values) {
    if (std::ranges::none_of(run.roles, [](const RoleSummary& role) { return role.stage > 0; })) return;
    const double step = roleMean(run, &RoleSummary::stepNs);
    if (step > 0)
        values.push_back({"bubble", "share", false, true,
                          (roleMean(run, &RoleSummary::idleNs) + roleMean(run, &RoleSummary::receiveWaitNs)) / step});
}

void addEfficiency(const RunSummary& run, std::vector<MetricValue>& values) {
    const std::pair<const char*, const char*> kNames[] = {{"parallel", "parallel efficiency"},
                                                          {"load_balance", "load balance"},
                                                          {"serialisation", "serialisation efficiency"},
                                                          {"transfer", "transfer efficiency"}};
    for (const auto& [key, name] : kNames)
        if (const auto value = run.efficiency.find(key); value != run.efficiency.end())
            values.push_back({name, "share", true, true, value->second});
}

}  // namespace

std::vector<double> holm(std::vector<double> pValues) {
    std::vector<size_t> order;
    for (size_t i = 0; i < pValues.size(); ++i)
        if (!std::isnan(pValues[i])) order.push_back(i);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return pValues[a] < pValues[b]; });
    double highest = 0;
    for (size_t i = 0; i < order.size(); ++i) {
        highest = std::max(highest, std::min(1.0, pValues[order[i]] * static_cast<double>(order.size() - i)));
        pValues[order[i]] = highest;
    }
    return pValues;
}

std::vector<MetricChange> compareMetrics(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                         const std::string& categoriesRefused, const std::string& timesRefused) {
    std::vector<Samples> all;
    std::map<std::string, size_t> index;
    gather(base, &Samples::base, all, index);
    gather(now, &Samples::now, all, index);
    const auto step = index.find("mean step");
    const double stepNs = step == index.end() ? 0 : std::max(mean(all[step->second].base), mean(all[step->second].now));
    std::vector<MetricChange> changes;
    std::vector<double> pValues;
    for (const Samples& samples : all) {
        MetricChange change;
        change.name = samples.first.name;
        change.unit = samples.first.unit;
        change.higherIsBetter = samples.first.higherIsBetter;
        if (!samples.base.empty()) change.base = mean(samples.base);
        if (!samples.now.empty()) change.now = mean(samples.now);
        double p = std::nan("");
        if (samples.first.byCategory) change.refused = categoriesRefused;
        if (change.unit != "share" && !timesRefused.empty()) change.refused = timesRefused;
        if (change.refused.empty() && change.base && change.now) {
            compare(samples, scaleOf(samples, stepNs), change, p);
            const bool ranksEnough =
                smallestRankTestP(samples.base.size(), samples.now.size()) * static_cast<double>(all.size()) <=
                1 - kConfidence;
            if (ranksEnough && !std::isnan(p)) {
                p = rankTestP(samples.base, samples.now);
                change.test = "rank";
            }
        }
        pValues.push_back(p);
        changes.push_back(std::move(change));
    }
    const std::vector<double> corrected = holm(pValues);
    for (size_t i = 0; i < changes.size(); ++i) {
        if (std::isnan(corrected[i])) continue;
        changes[i].pValue = corrected[i];
        changes[i].significant =
            corrected[i] < 1 - kConfidence && std::abs(*changes[i].delta) >= kWorthSaying * scaleOf(all[i], stepNs);
    }
    return changes;
}

std::vector<MetricValue> metricsOf(const RunSummary& run) {
    std::vector<MetricValue> values;
    addSteps(run, values);
    if (!run.roles.empty()) {
        addCategories(run, values);
        addBubble(run, values);
    }
    addEfficiency(run, values);
    for (const TrafficSummary& row : run.traffic)
        if (row.busbw > 0 && row.use != "control")
            values.push_back({fmt::format("bus bandwidth, {} of {}, {}, {} ranks", row.op, row.use,
                                          text::sizeClassText(row.sizeClass), row.ranks),
                              "bytes/s", true, true, row.busbw});
    return values;
}

}  // namespace rankscope::compare
