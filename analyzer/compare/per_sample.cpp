// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/per_sample.h"

#include "analyzer/compare/side_means.h"

namespace rankscope::compare {
namespace {

void divide(std::map<std::string, double>& values, double factor) {
    for (auto& [name, value] : values) value /= factor;
}

double pipelineBytes(const std::vector<RunSummary>& runs) {
    double bytes = 0;
    for (const RunSummary& run : runs)
        for (const TrafficSummary& row : run.traffic)
            if (row.use == "pipeline") bytes += row.bytes;
    return bytes / static_cast<double>(runs.size());
}

}  // namespace

RunSummary perSamples(RunSummary run, double factor) {
    for (double& step : run.stepsNs) step /= factor;
    if (run.slowStepNs) *run.slowStepNs /= factor;
    for (RoleSummary& role : run.roles) {
        for (const auto& field : kRoleNumbers) role.*field.member /= factor;
        for (auto& [name, work] : role.work) {
            work.ns /= factor;
            work.blocks /= factor;
        }
        divide(role.idleByCauseNs, factor);
        divide(role.stallByCauseNs, factor);
        divide(role.pathNs, factor);
    }
    for (TrafficSummary& row : run.traffic) {
        const double busbw = row.busbw;
        for (const auto& field : kTrafficNumbers) row.*field.member /= factor;
        row.busbw = busbw;
    }
    divide(run.pathTransferNs, factor);
    for (KernelSummary& kernel : run.kernels) {
        kernel.count /= factor;
        kernel.ns /= factor;
    }
    for (FindingSummary& finding : run.findings) {
        if (finding.costNs) *finding.costNs /= factor;
        if (finding.savingNs) *finding.savingNs /= factor;
    }
    return run;
}

std::optional<double> samplesByPipeline(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now) {
    const std::string before = commonValue(base, "schedule"), after = commonValue(now, "schedule");
    if (before.empty() || after.empty() || before == after) return std::nullopt;
    const double bytesBefore = pipelineBytes(base), bytesAfter = pipelineBytes(now);
    if (bytesBefore <= 0 || bytesAfter <= 0) return std::nullopt;
    return bytesAfter / bytesBefore;
}

}  // namespace rankscope::compare
