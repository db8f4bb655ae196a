// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/compare/cause_compute.h"
#include "analyzer/compare/cause_host.h"
#include "analyzer/compare/cause_pipeline.h"
#include "analyzer/compare/cause_transfer.h"
#include "analyzer/compare/compute_growth.h"
#include "analyzer/diagnose/diagnoses.h"

namespace rankscope::compare {
namespace {

constexpr double kWorthACause = 0.2;   // of the change
constexpr double kWorthAsking = 0.05;  // of the change: what a row must have to be part of a cause that others share,
                                       // as two operations of one kind of traffic do
constexpr double kLaunchNs = 5e3;      // what a launch takes the host: 2 to 10 us, a collective's more than a kernel's
constexpr double kMostKernelsOfAMessage =
    3;  // that come with a message more: a copy, a scaling, the optimizer's of a bucket
constexpr double kLaunchesAreWhy = 0.4;  // of the time lost to the host
constexpr double kExplains =
    0.5;  // of the change: a finding whose cost grew by that names the cause where the differences do not

/// Findings that appeared or got worse between the two sides as causesOf() sees them.
std::vector<const FindingChange*> grown(const std::vector<FindingChange>& findings, bool reversed) {
    std::vector<const FindingChange*> rows;
    for (const FindingChange& finding : findings) {
        const bool more = finding.status == FindingStatus::isNew || finding.status == FindingStatus::worse;
        const bool less = finding.status == FindingStatus::gone || finding.status == FindingStatus::better;
        if (reversed ? less : more) rows.push_back(&finding);
    }
    return rows;
}

double costGrowth(const FindingChange& finding) {
    return std::abs(finding.newCostNs.value_or(0) - finding.baseCostNs.value_or(0));
}

/// What a finding of the same diagnosis knows better than the differences: where. Of a slower link, also whether it is
/// one, or all of them.
void refine(const std::vector<const FindingChange*>& findings, ChangeCause& cause) {
    const auto has = [&](const char* id) {
        return std::any_of(findings.begin(), findings.end(),
                           [&](const FindingChange* finding) { return finding->id == id; });
    };
    if (cause.kind == "slower_link" || cause.kind == "slower_p2p")
        for (const char* id : {cause.kind == "slower_p2p" ? diagnose::kExposedP2p.id : diagnose::kSlowLink.id,
                               diagnose::kSlowLink.id, diagnose::kUnderUsedLink.id})
            if (has(id)) {
                cause.diagnosis = id;
                break;
            }
    for (const FindingChange* finding : findings) {
        if (cause.diagnosis.empty() || finding->id != cause.diagnosis) continue;
        cause.evidence.push_back(fmt::format("{} {}: {}", finding->id, finding->title, finding->cause));
        if (cause.ranks.empty() && !finding->ranks.empty() && finding->where != kAllRanks) {
            cause.ranks = finding->ranks;
            cause.where = finding->where;
        }
        return;
    }
}

std::string kindOf(const std::string& id) {
    const diagnose::Diagnosis* diagnosis = diagnose::findDiagnosis(id);
    return diagnosis != nullptr && *diagnosis->changeKind != '\0' ? diagnosis->changeKind : "unknown";
}

ChangeCause unknown(double ns) {
    return {"unknown", "what changed is not told by the differences", "", "", {}, ns, {}};
}

/// Where the differences say nothing, a finding that costs about what the step lost says it.
ChangeCause fromFindings(const std::vector<const FindingChange*>& findings, double ns) {
    const FindingChange* best = nullptr;
    for (const FindingChange* finding : findings)
        if (costGrowth(*finding) >= kExplains * ns && (!best || costGrowth(*finding) > costGrowth(*best)))
            best = finding;
    if (!best) return unknown(ns);
    return {kindOf(best->id), best->title + ": " + best->cause, best->id, best->where, best->ranks, ns, {}};
}

constexpr const char* kBetweenPlaces = "; ";

/// What is the same at another place is said of that place, too.
void addPlace(ChangeCause& from, ChangeCause& to) {
    if (from.kind == "unknown" || to.where.find(from.where) != std::string::npos) return;
    for (ChangeCause* cause : {&from, &to}) {
        if (cause->where.empty() || cause->where.find(kBetweenPlaces) != std::string::npos)
            continue;  // of more than one: they are named
        for (std::string& evidence : cause->evidence) evidence = cause->where + ": " + evidence;
    }
    to.where += (to.where.empty() ? "" : kBetweenPlaces) + from.where;
    if (from.text != to.text) to.text += "; " + from.text;
}

/// Causes of one kind and the same ranks are one.
void merge(ChangeCause cause, std::vector<ChangeCause>& causes) {
    for (ChangeCause& other : causes) {
        if (other.kind != cause.kind || other.ranks != cause.ranks) continue;
        other.ns += cause.ns;
        addPlace(cause, other);
        for (std::string& evidence : cause.evidence)
            if (std::find(other.evidence.begin(), other.evidence.end(), evidence) == other.evidence.end())
                other.evidence.push_back(std::move(evidence));
        return;
    }
    causes.push_back(std::move(cause));
}

struct ExposedTraffic {
    std::string name;  // empty: none
    double addedNs = 0;
};

/// Whose exposed transfer grew most.
ExposedTraffic trafficThatGrew(const SideMeans& base, const SideMeans& now) {
    const std::map<std::string, TrafficSummary> before = byUse(base);
    ExposedTraffic most;
    for (const auto& [use, after] : byUse(now)) {
        const auto was = before.find(use);
        const double ns = after.exposedTransferNs - (was == before.end() ? 0 : was->second.exposedTransferNs);
        if (ns > most.addedNs) most = {use, ns};
    }
    return most;
}

/// Where the path went another way, through compute that takes no longer, for traffic that less hides: what ranks wait
/// for says it.
ChangeCause fromExposed(const SideMeans& base, const SideMeans& now, const ChangeCause& cause, bool reversed) {
    const ExposedTraffic traffic = trafficThatGrew(base, now);
    return traffic.addedNs >= kExplains * cause.ns ? transferCause(base, now, traffic.name, cause.ns, reversed) : cause;
}

/// `base` is the fast side.
std::vector<ChangeCause> causesOfPart(const SideMeans& base, const SideMeans& now, const AttributionRow& row, double ns,
                                      bool reversed) {
    if (row.category == "compute") {
        std::vector<ChangeCause> causes = computeCauses(base, now, ns, reversed);
        if (!causes.empty()) return causes;
        if (auto schedule = pipelineCause(base, now, ns, reversed)) return {std::move(*schedule)};
        return {unknown(ns)};
    }
    const bool ofOne = row.what.starts_with(kTransferRow);
    return {transferCause(base, now, ofOne ? row.what.substr(kTransferRow.size()) : trafficThatGrew(base, now).name, ns,
                          reversed)};
}

double meanKernels(const SideMeans& side) {
    double kernels = 0;
    for (const auto& [name, role] : side.roles) kernels += role.kernels;
    return kernels / static_cast<double>(std::max<size_t>(1, side.roles.size()));
}

/// The messages that are why hosts launch too late: so many more than before that calling them, and the kernels that
/// come with each, takes the time.
std::optional<ChangeCause> causeOfLaunches(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    const std::map<std::string, TrafficSummary> before = byUse(base);
    std::vector<std::pair<double, std::string>> growth;
    double messages = 0;
    for (const auto& [use, after] : byUse(now)) {
        const auto was = before.find(use);
        growth.emplace_back(after.count - (was == before.end() ? 0 : was->second.count), use);
        messages += std::max(0.0, growth.back().first);
    }
    const double kernels = std::max(0.0, meanKernels(now) - meanKernels(base));
    if (messages * kMostKernelsOfAMessage < kernels || (messages + kernels) * kLaunchNs < kLaunchesAreWhy * ns)
        return std::nullopt;
    std::sort(growth.rbegin(), growth.rend());
    for (const auto& [more, use] : growth) {
        ChangeCause cause = transferCause(base, now, use, ns, reversed);
        if (more <= 0 || (cause.kind != "smaller_buckets" && cause.kind != "redundant_communication")) continue;
        cause.evidence.push_back("hosts cannot launch them in time");
        return cause;
    }
    return std::nullopt;
}

/// Whether a diagnosis is found in half of the new side's runs or more and in fewer of the base's, be it at another
/// place in each.
bool appeared(const SideMeans& base, const SideMeans& now, const std::string& id) {
    const auto isOn = [&](const SideMeans& side) {
        const auto runs = side.findingRuns.find(id);
        return runs != side.findingRuns.end() && 2 * runs->second >= side.runs;
    };
    return isOn(now) && !isOn(base);
}

/// The host's own stalls; but a finding that costs as much, where none of the stalls' kind does, knows better what they
/// delay.
std::vector<ChangeCause> causesOfHost(const SideMeans& base, const SideMeans& now,
                                      const std::vector<const FindingChange*>& findings, double ns, bool reversed) {
    std::vector<ChangeCause> causes = hostCauses(base, now, ns, reversed);
    for (ChangeCause& cause : causes) {
        if (cause.kind == "launch_bound" || cause.kind == "unknown")
            if (auto launches = causeOfLaunches(base, now, cause.ns, reversed)) cause = std::move(*launches);
        // Stalls that wander from rank to rank hit one of them by chance more often; what they look like there is not
        // what they are.
        if (cause.kind != "stalls" && appeared(base, now, diagnose::kTransient.id) &&
            !appeared(base, now, cause.diagnosis))
            cause = {"stalls",
                     "hosts stand still now and then, one or another",
                     diagnose::kTransient.id,
                     "all ranks",
                     {},
                     cause.ns,
                     std::move(cause.evidence)};
    }
    if (causes.size() > 1 || causes.front().kind == "smaller_buckets" ||
        causes.front().kind == "redundant_communication")
        return causes;
    const bool confirmed = std::any_of(findings.begin(), findings.end(), [&](const FindingChange* finding) {
        return finding->id == causes.front().diagnosis;
    });
    if (confirmed) return causes;
    ChangeCause found = fromFindings(findings, ns);
    if (found.kind == "lost_overlap")
        found.kind = "late_launch";  // the critical path is on the host: it calls them late
    if (found.kind != "unknown") causes.front() = std::move(found);
    return causes;
}

/// Without critical paths: why even the rank that waits least waits longer. Others hold it up: now this one and now
/// that one, or as a pipeline's schedule has it.
ChangeCause causeOfWaiting(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    if (growthOfHeaviest(base, now).ns() >= kExplains * ns)
        if (std::vector<ChangeCause> causes = computeCauses(base, now, ns, reversed); !causes.empty())
            return std::move(causes.front());
    if (auto schedule = pipelineCause(base, now, ns, reversed)) return std::move(*schedule);
    ChangeCause stalls = hostCauses(base, now, ns, reversed).front();
    return stalls.kind == "stalls" ? stalls : unknown(ns);
}

/// Copies and sets that nothing hides; a finding says whether they are of the pageable kind.
ChangeCause causeOfCopies(const std::vector<const FindingChange*>& findings, double ns) {
    const bool pageable = std::any_of(findings.begin(), findings.end(), [](const FindingChange* finding) {
        return finding->id == diagnose::kPageable.id;
    });
    if (pageable)
        return {"pageable_copies",
                "copies from pageable memory hold the device up",
                diagnose::kPageable.id,
                "all ranks",
                {},
                ns,
                {}};
    const ChangeCause found = fromFindings(findings, ns);
    return found.kind == "unknown"
               ? ChangeCause{"copies", "copies and sets hold the device up for longer", "", "all ranks", {}, ns, {}}
               : found;
}

}  // namespace

std::vector<ChangeCause> causesOf(const SideMeans& base, const SideMeans& now,
                                  const std::vector<FindingChange>& findings, double changeNs) {
    const bool reversed = changeNs < 0;
    const SideMeans& slow = reversed ? base : now;
    const SideMeans& fast = reversed ? now : base;
    const double ns = std::abs(changeNs);
    const std::vector<const FindingChange*> more = grown(findings, reversed);
    std::vector<ChangeCause> causes;
    double hostNs = 0, copiesNs = 0;
    for (const AttributionRow& row : attributeChange(fast, slow, ns)) {
        // The host, what it launches and the gaps it leaves are one story.
        const double rowNs =
            std::min(row.ns, ns);  // a path that changes sides takes more from one category than the step lost
        if (row.category == "host" || row.category == "launch" || row.category == "gap" || row.category == "idle") {
            hostNs += row.ns;
        } else if (row.category == "wait" && rowNs >= kWorthAsking * ns) {
            merge(causeOfWaiting(fast, slow, rowNs, reversed), causes);
        } else if (row.category == "memory") {
            copiesNs += row.ns;
        } else if ((row.category == "compute" || row.category == "transfer") && rowNs >= kWorthAsking * ns) {
            for (ChangeCause& cause : causesOfPart(fast, slow, row, rowNs, reversed)) merge(std::move(cause), causes);
        }
    }
    std::erase_if(causes, [&](const ChangeCause& cause) { return cause.ns < kWorthACause * ns; });
    if (hostNs >= kWorthACause * ns)
        for (ChangeCause& cause : causesOfHost(fast, slow, more, std::min(hostNs, ns), reversed))
            merge(std::move(cause), causes);
    if (copiesNs >= kWorthACause * ns) merge(causeOfCopies(more, std::min(copiesNs, ns)), causes);
    if (causes.empty()) causes.push_back(unknown(ns));
    for (ChangeCause& cause : std::exchange(causes, {})) {
        if (cause.kind == "unknown") cause = fromFindings(more, cause.ns);
        if (cause.kind == "unknown") cause = fromExposed(fast, slow, cause, reversed);
        merge(std::move(cause), causes);
    }
    std::stable_sort(causes.begin(), causes.end(),
                     [](const ChangeCause& a, const ChangeCause& b) { return a.ns > b.ns; });
    for (ChangeCause& cause : causes) {
        refine(more, cause);
        if (!reversed) continue;
        cause.ns = -cause.ns;
        cause.text = "no longer: " + cause.text;
    }
    return causes;
}

}  // namespace rankscope::compare
