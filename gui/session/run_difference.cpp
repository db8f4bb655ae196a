// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gui/session/range_statistics.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

RoleChange roleChange(const std::string& role, const StepBreakdown& a, const StepBreakdown& b) {
    RoleChange change{role, {"step, mean", a.stepNs, b.stepNs}, {}, {}};
    for (size_t part = 0; part < kStepParts; ++part)
        change.parts.push_back({nameOf(static_cast<StepPart>(part)), a.parts[part], b.parts[part]});
    std::map<std::string, TimeChange> causes;
    const auto add = [&](const StepBreakdown& breakdown, int64_t TimeChange::*side) {
        for (const auto& [cause, ns] : breakdown.idleCauses) {
            TimeChange& found = causes[cause];
            found.what = "idle: " + causeText(cause);
            found.*side = ns;
        }
    };
    add(a, &TimeChange::aNs);
    add(b, &TimeChange::bNs);
    for (auto& [cause, found] : causes) change.idleCauses.push_back(std::move(found));
    return change;
}

void compareRoles(const RunSummary& a, const RunSummary& b, RunDifference& difference) {
    if (a.all.ranks.empty() || b.all.ranks.empty()) return;
    difference.roles.push_back(roleChange("all ranks", a.all, b.all));
    const bool sameRoles = a.roles.size() == b.roles.size() &&
                           std::equal(a.roles.begin(), a.roles.end(), b.roles.begin(),
                                      [](const auto& one, const auto& two) { return one.first == two.first; });
    if (sameRoles)
        for (const auto& [role, breakdown] : a.roles)
            difference.roles.push_back(roleChange(role, breakdown, b.roles.at(role)));
    if (a.all.ranks != b.all.ranks) return;
    for (const auto& [rank, breakdown] : a.ranks)
        difference.roles.push_back(roleChange(fmt::format("rank {}", rank), breakdown, b.ranks.at(rank)));
}

FindingChange inB(const RunInfo& run, size_t index) {
    const FindingInfo& finding = run.findings[index];
    FindingChange change{FindingState::appeared,
                         displayText(finding.diagnosis),
                         displayText(finding.title),
                         {},
                         finding.severity,
                         {},
                         index};
    return change;
}

using Match = bool (*)(const FindingInfo& a, const FindingInfo& b);

// Pairs findings of A, by index, with those of B that `match` and are not paired yet.
void pairUp(const RunInfo& a, const RunInfo& b, Match match, std::map<size_t, size_t>& pairs) {
    std::set<size_t> taken;
    for (const auto& [inA, inB] : pairs) taken.insert(inB);
    for (size_t i = 0; i < a.findings.size(); ++i) {
        if (a.findings[i].verdict != "found" || pairs.contains(i)) continue;
        for (size_t k = 0; k < b.findings.size(); ++k) {
            if (b.findings[k].verdict != "found" || taken.contains(k) || !match(a.findings[i], b.findings[k])) continue;
            pairs[i] = k;
            taken.insert(k);
            break;
        }
    }
}

void compareFindings(const RunInfo& a, const RunInfo& b, RunDifference& difference) {
    std::map<size_t, size_t> pairs;
    pairUp(
        a, b,
        [](const FindingInfo& one, const FindingInfo& two) {
            return one.diagnosis == two.diagnosis && one.ranks == two.ranks;
        },
        pairs);
    pairUp(
        a, b, [](const FindingInfo& one, const FindingInfo& two) { return one.diagnosis == two.diagnosis; }, pairs);
    std::set<size_t> known;
    for (size_t i = 0; i < a.findings.size(); ++i) {
        const FindingInfo& finding = a.findings[i];
        if (finding.verdict != "found") continue;
        FindingChange change{FindingState::gone,
                             displayText(finding.diagnosis),
                             displayText(finding.title),
                             finding.severity,
                             {},
                             i,
                             {}};
        if (const auto found = pairs.find(i); found != pairs.end()) {
            known.insert(found->second);
            change.inB = found->second;
            change.bShare = b.findings[found->second].severity;
            const double moved = *change.bShare - *change.aShare;
            change.state = std::abs(moved) < kSameShare ? FindingState::same
                           : moved > 0                  ? FindingState::worse
                                                        : FindingState::better;
        }
        difference.findings.push_back(std::move(change));
    }
    for (size_t i = 0; i < b.findings.size(); ++i)
        if (b.findings[i].verdict == "found" && !known.contains(i)) difference.findings.push_back(inB(b, i));
    std::stable_sort(difference.findings.begin(), difference.findings.end(),
                     [](const FindingChange& one, const FindingChange& two) { return one.state < two.state; });
}

void compareKernels(const RunSummary& a, const RunSummary& b, RunDifference& difference) {
    std::map<std::pair<std::string, bool>, KernelChange> kernels;
    for (const KernelSummary& kernel : a.kernels) {
        KernelChange& change = kernels[{kernel.name, kernel.communication}];
        change.time.aNs += kernel.nsPerStep;
        change.aCount += kernel.countPerStep;
        if (change.aLongest.table == EventTable::none) change.aLongest = kernel.longest;
    }
    for (const KernelSummary& kernel : b.kernels) {
        KernelChange& change = kernels[{kernel.name, kernel.communication}];
        change.time.bNs += kernel.nsPerStep;
        change.bCount += kernel.countPerStep;
        if (change.bLongest.table == EventTable::none) change.bLongest = kernel.longest;
    }
    difference.kernelNames = kernels.size();
    for (auto& [key, change] : kernels) {
        change.time.what = key.first;
        change.communication = key.second;
        difference.kernels.push_back(std::move(change));
    }
    std::stable_sort(difference.kernels.begin(), difference.kernels.end(),
                     [](const KernelChange& one, const KernelChange& two) {
                         return std::abs(one.time.changeNs()) > std::abs(two.time.changeNs());
                     });
    if (difference.kernels.size() > kMaxKernelChanges) difference.kernels.resize(kMaxKernelChanges);
}

void remark(const RunSummary& a, const RunInfo& aRun, const RunSummary& b, const RunInfo& bRun,
            RunDifference& difference) {
    if (aRun.outline.ranks.size() != bRun.outline.ranks.size())
        difference.remarks.push_back(fmt::format("A has {} ranks, B {}: they are compared by their means",
                                                 aRun.outline.ranks.size(), bRun.outline.ranks.size()));
    if (aRun.outline.hosts.size() != bRun.outline.hosts.size())
        difference.remarks.push_back(
            fmt::format("A ran on {} hosts, B on {}", aRun.outline.hosts.size(), bRun.outline.hosts.size()));
    for (const auto& [letter, run, summary] : {std::tuple{"A", &aRun, &a}, std::tuple{"B", &bRun, &b}}) {
        if (summary->steps == 0)
            difference.remarks.push_back(fmt::format("{} has no steps: only its whole length can be compared", letter));
        if (!run->analyzed)
            difference.remarks.push_back(
                fmt::format("{} is not analysed: rankscope analyze {}", letter, displayText(run->name)));
    }
}

std::string signedDuration(int64_t ns) {
    return (ns > 0 ? "+" : "") + durationText(ns);
}

std::string line(const TimeChange& change) {
    return fmt::format("{}: {} -> {} ({})\n", change.what, durationText(change.aNs), durationText(change.bNs),
                       signedDuration(change.changeNs()));
}

}  // namespace

const char* nameOf(FindingState state) noexcept {
    switch (state) {
        case FindingState::appeared:
            return "new";
        case FindingState::gone:
            return "gone";
        case FindingState::worse:
            return "worse";
        case FindingState::better:
            return "better";
        case FindingState::same:
            return "same";
    }
    return "";
}

RunDifference compareRuns(const RunSummary& a, const RunInfo& aRun, const RunSummary& b, const RunInfo& bRun) {
    RunDifference difference;
    difference.aName = a.name;
    difference.bName = b.name;
    difference.aSteps = a.steps;
    difference.bSteps = b.steps;
    difference.step = {"step, median", a.medianStepNs, b.medianStepNs};
    compareRoles(a, b, difference);
    compareFindings(aRun, bRun, difference);
    compareKernels(a, b, difference);
    remark(a, aRun, b, bRun, difference);
    return difference;
}

std::string differenceText(const RunDifference& difference) {
    std::string text = fmt::format("A {} ({} steps), B {} ({} steps)\n", difference.aName, difference.aSteps,
                                   difference.bName, difference.bSteps);
    text += line(difference.step);
    for (const std::string& remark : difference.remarks) text += remark + "\n";
    for (const RoleChange& role : difference.roles) {
        text += "\n" + role.role + "\n" + line(role.step);
        for (const TimeChange& part : role.parts) text += line(part);
        for (const TimeChange& cause : role.idleCauses) text += line(cause);
    }
    text += "\nfindings\n";
    for (const FindingChange& finding : difference.findings) {
        const auto share = [](const std::optional<double>& value) {
            return value ? fmt::format("{:.1f} %", 100 * *value) : std::string("none");
        };
        text += fmt::format("{} {} {}: {} -> {}\n", nameOf(finding.state), finding.diagnosis, finding.title,
                            share(finding.aShare), share(finding.bShare));
    }
    text += "\nkernels, of a rank's step\n";
    for (const KernelChange& kernel : difference.kernels) text += line(kernel.time);
    return text;
}

}  // namespace rankscope::gui
