// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/compare/compared_sides.h"

#include <algorithm>

namespace rankscope::compare {

RunSummary makeRun(int number) {
    RunSummary run;
    run.name = "run" + std::to_string(number);
    run.environment = {{"world_size", "4"},   {"gpu", "H100"},  {"layout", "dp 4"},
                       {"source", "capture"}, {"nccl", "2.28"}, {"virtual", "no"}};
    run.hosts = {"a"};
    const double factor = 1 + 0.002 * (number % 3 - 1);
    for (int step = 0; step < 12; ++step) run.stepsNs.push_back(90 * kMs * factor * (1 + 0.001 * (step % 4)));
    run.steps = 12;
    for (int rank = 0; rank < 4; ++rank) {
        RoleSummary role;
        role.role = "dp " + std::to_string(rank);
        role.rank = rank;
        role.host = rank < 2 ? "a" : "b";
        role.computeNs = 80 * kMs * factor;
        role.exposedTransferNs = 10 * kMs;
        role.stepNs = role.computeNs + role.exposedTransferNs;
        role.kernels = 100;
        role.work = {{"gemm", {role.computeNs, 1e5}}};
        if (rank == 0) role.pathNs = {{"compute", role.computeNs}, {"transfer", 10 * kMs}};
        run.roles.push_back(role);
    }
    TrafficSummary sum;
    sum.use = "gradients";
    sum.op = "all_reduce";
    sum.dataType = "bf16";
    sum.ranks = 4;
    sum.sizeClass = 12;
    sum.count = 4;
    sum.bytes = 100 << 20;
    sum.transferNs = sum.exposedTransferNs = 10 * kMs;
    sum.busbw = 15e9;
    run.traffic.push_back(sum);
    run.pathTransferNs = {{"all_reduce of gradients", 10 * kMs}};
    run.hasPath = true;
    run.kernels = {{"gemm", 100, 80 * kMs * factor}};
    run.efficiency = {{"parallel", 0.88}};
    return run;
}

std::vector<RunSummary> makeSide(int first, Change change) {
    std::vector<RunSummary> runs;
    for (int i = first; i < first + 3; ++i) {
        runs.push_back(makeRun(i));
        runs.back().stepsNs.front() += i;  // no run is another to the nanosecond
        if (change) change(runs.back());
    }
    return runs;
}

void longerSteps(RunSummary& run, double ns) {
    for (double& step : run.stepsNs) step += ns;
}

Comparison compareWith(Change change, const CompareOptions& options) {
    return compareRuns(makeSide(0), makeSide(10, change), options);
}

void slowRank(RunSummary& run) {
    longerSteps(run, 20 * kMs);
    run.roles[2].computeNs += 20 * kMs;
    for (RoleSummary& role : run.roles) {
        role.stepNs += 20 * kMs;
        if (role.rank != 2) role.exposedWaitNs += 20 * kMs;
    }
    run.roles[2].pathNs["compute"] = run.roles[0].pathNs["compute"] + 20 * kMs;
    run.roles[0].pathNs["compute"] = 0;
}

void slowLink(RunSummary& run) {
    longerSteps(run, 10 * kMs);
    run.traffic[0].transferNs *= 2;
    run.traffic[0].exposedTransferNs *= 2;
    run.traffic[0].busbw /= 2;
    run.roles[0].pathNs["transfer"] += 10 * kMs;
    run.pathTransferNs["all_reduce of gradients"] += 10 * kMs;
}

FindingSummary finding(const std::string& id, double costNs, const std::string& verdict) {
    FindingSummary row;
    row.id = id;
    row.title = "straggler";
    row.verdict = verdict;
    row.ranks = {2};
    row.roles = {"dp 2"};
    row.costNs = costNs;
    row.severity = costNs / (90 * kMs);
    return row;
}

bool isNoticed(const Comparison& c, const std::string& words) {
    return std::ranges::any_of(c.gate.notices,
                               [&](const std::string& notice) { return notice.find(words) != std::string::npos; });
}

}  // namespace rankscope::compare
