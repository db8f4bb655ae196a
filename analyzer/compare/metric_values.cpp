// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/metric_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/compare/run_statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

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
    std::set<std::string> causes;
    for (const RoleSummary& role : run.roles)
        for (const auto& [cause, ns] : role.idleByCauseNs) causes.insert(cause);
    for (const std::string& cause : causes) {
        double sum = 0;
        for (const RoleSummary& role : run.roles)
            if (const auto ns = role.idleByCauseNs.find(cause); ns != role.idleByCauseNs.end()) sum += ns->second;
        std::string name = "idle: " + cause;
        std::ranges::replace(name, '_', ' ');
        values.push_back({name, "ns", false, true, sum / static_cast<double>(run.roles.size())});
    }
}

/// Of a pipeline: what its ranks are idle or wait to receive, share of the step.
void addBubble(const RunSummary& run, std::vector<MetricValue>& values) {
    if (std::none_of(run.roles.begin(), run.roles.end(), [](const RoleSummary& role) { return role.stage > 0; }))
        return;
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

std::string sizeClassText(int sizeClass) {
    if (sizeClass < 0) return "unknown size";
    return text::bytesText(std::pow(4.0, sizeClass)) + " to " + text::bytesText(std::pow(4.0, sizeClass + 1));
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
                                          sizeClassText(row.sizeClass), row.ranks),
                              "bytes/s", true, true, row.busbw});
    return values;
}

}  // namespace rankscope::compare
