// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/odd_runs.h"

#include <algorithm>
#include <cmath>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/side_means.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

bool has(const RunSummary& run, const FindingSummary& wanted) {
    return std::ranges::any_of(run.findings, [&](const FindingSummary& finding) {
        return finding.verdict == "found" && mayBeOne(finding, wanted);
    });
}

bool isOfMachine(const std::string& id) {
    const diagnose::Diagnosis* diagnosis = diagnose::findDiagnosis(id);
    return diagnosis && diagnosis->cureAt == diagnose::CureAt::machine;
}

double typicalNs(const RunSummary& run) {
    return locate(run.stepsNs, StepEstimator::trimmedMean).value;
}

std::string hostOf(const RunSummary& run, int rank) {
    const auto role = std::ranges::find(run.roles, rank, &RoleSummary::rank);
    return role == run.roles.end() ? "" : role->host;
}

/// The ranks that compute longer than in the other runs, where not all of them do, and by as much as the run's step is
/// longer than theirs (`excessNs`): what makes less than half of that is not why.
std::vector<int> slowerRanks(const RunSummary& run, const std::vector<const RunSummary*>& others, double excessNs) {
    constexpr double kIsWhy = 0.5;
    std::vector<RunSummary> usual;
    for (const RunSummary* other : others) usual.push_back(*other);
    const SideMeans before = meansOf(usual), after = meansOf({run});
    const std::vector<std::string> roles = rolesThatGrew(before, after, &RoleSummary::computeNs);
    for (const std::string& role : roles)
        if (after.roles.at(role).computeNs - before.roles.at(role).computeNs < kIsWhy * excessNs) return {};
    std::vector<int> ranks;
    if (!roles.empty()) placeText(after, roles, ranks);
    return ranks;
}

}  // namespace

std::vector<size_t> farOff(const std::vector<double>& logs, double noise) {
    if (logs.size() < kFewestForOdd) return {};
    const double middle = facts::median(logs), far = std::max(kFarOff * noise, std::log1p(kLeastOdd));
    std::vector<size_t> odd;
    for (size_t i = 0; i < logs.size(); ++i)
        if (std::abs(logs[i] - middle) > far) odd.push_back(i);
    if (2 * odd.size() >= logs.size()) odd.clear();
    return odd;
}

const FindingSummary* findingOfItsMachine(const RunSummary& run, const std::vector<const RunSummary*>& runs) {
    const FindingSummary* worst = nullptr;
    for (const FindingSummary& finding : run.findings) {
        if (finding.verdict != "found" || !isOfMachine(finding.id)) continue;
        const auto with = std::ranges::count_if(runs, [&](const RunSummary* other) { return has(*other, finding); });
        if (2 * static_cast<size_t>(with) >= runs.size()) continue;
        if (!worst || finding.severity > worst->severity) worst = &finding;
    }
    return worst;
}

std::vector<size_t> oddOnes(const std::vector<const RunSummary*>& runs, const std::vector<double>& logs, double noise) {
    std::vector<size_t> odd = farOff(logs, noise);
    if (runs.size() < kFewestForOdd) return odd;
    const double middle = facts::median(logs);
    for (size_t i = 0; i < runs.size(); ++i)
        if (logs[i] - middle > std::log1p(kLeastOdd) && !text::contains(odd, i) && findingOfItsMachine(*runs[i], runs))
            odd.push_back(i);
    std::ranges::sort(odd);
    if (2 * odd.size() >= runs.size()) odd.clear();
    return odd;
}

OddRun describeOddRun(const RunSummary& run, const std::vector<const RunSummary*>& others, std::string side) {
    OddRun odd;
    odd.side = std::move(side);
    odd.run = run.name;
    odd.label = run.label;
    odd.stepNs = typicalNs(run);
    std::vector<const RunSummary*> all = others;
    all.push_back(&run);
    double sum = 0;
    for (const RunSummary* other : others) {
        odd.othersNs.push_back(typicalNs(*other));
        sum += std::log(odd.othersNs.back());
    }
    odd.ratio = others.empty() ? 1 : odd.stepNs / std::exp(sum / static_cast<double>(others.size()));
    if (const FindingSummary* finding = findingOfItsMachine(run, all)) {
        odd.diagnosis = finding->id;
        odd.title = finding->title;
        odd.cause = finding->cause;
        odd.ranks = finding->ranks;
    } else if (odd.ratio > 1 && !others.empty()) {
        odd.ranks = slowerRanks(run, others, odd.stepNs - odd.stepNs / odd.ratio);
    }
    for (const int rank : odd.ranks)
        if (const std::string host = hostOf(run, rank); !host.empty() && !text::contains(odd.hosts, host))
            odd.hosts.push_back(host);
    if (odd.hosts.empty()) odd.hosts = run.hosts;
    return odd;
}

}  // namespace rankscope::compare
