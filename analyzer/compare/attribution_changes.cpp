// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/side_means.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

using text::valueAt;

// A share of the way from the middle rank to the one that grew most: those beyond it are where it happens.
constexpr double kStandsOut = 0.5;
// A share of the largest growth: when the middle rank has more than the rest of it, everyone grew.
constexpr double kNotEveryone = 0.35;
constexpr size_t kMostDetails = 3;
constexpr double kResidue = 1e-9;  // of all that is added up: what the rounding of sums leaves
const std::string kComputeRow = "compute of ";
constexpr double kOutliersCount = 1e-2;  // of the change: below, typical and mean steps are the same
constexpr double kWorthARow = 1e-3;      // of the change: smaller rows are part of the rest

std::set<std::string> keysOf(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
    std::set<std::string> keys;
    for (const auto& [key, value] : a) keys.insert(key);
    for (const auto& [key, value] : b) keys.insert(key);
    return keys;
}

/// Says which times changed most in the direction of the change: "gemm: 2.00 ms -> 3.00 ms a step", between `before`
/// and `after`.
std::vector<std::string> largestChanges(const std::map<std::string, double>& base,
                                        const std::map<std::string, double>& now, double direction,
                                        const std::string& before, const std::string& after) {
    std::vector<std::pair<double, std::string>> changes;
    for (const std::string& name : keysOf(base, now)) {
        const double from = valueAt(base, name), to = valueAt(now, name);
        if ((to - from) * direction > 0)
            changes.emplace_back(std::abs(to - from),
                                 fmt::format("{}{}: {} -> {} a step{}", before, name, text::durationText(from),
                                             text::durationText(to), after));
    }
    std::ranges::stable_sort(changes, std::greater{}, [](const auto& change) { return change.first; });
    std::vector<std::string> texts;
    for (const auto& [size, text] : text::first(changes, kMostDetails)) texts.push_back(text);
    return texts;
}

/// Returns kernels by name, in ns per step: means over the ranks of `roles`, over all ranks where there are none.
std::map<std::string, double> kernelTimes(const SideMeans& side, const std::vector<std::string>& roles) {
    std::map<std::string, double> times;
    if (roles.empty())
        for (const auto& [name, kernel] : side.kernels) times[name] = kernel.ns;
    for (const std::string& name : roles)
        if (const auto role = side.roles.find(name); role != side.roles.end())
            for (const auto& [kernel, work] : role->second.work)
                times[kernel] += work.ns / static_cast<double>(roles.size());
    return times;
}

/// Names the kernels of the ranks where it happens that changed most in the direction of the change.
std::vector<std::string> kernelDetails(const SideMeans& base, const SideMeans& now,
                                       const std::vector<std::string>& roles, double direction) {
    const char* mean = roles.empty() ? ", mean of all ranks" : roles.size() > 1 ? ", mean of these ranks" : "";
    return largestChanges(kernelTimes(base, roles), kernelTimes(now, roles), direction, "", mean);
}

/// Says that it is not the kernels that changed: other work has become longer than they are, or shorter.
std::string movedOnPathText(const SideMeans& base, const SideMeans& now, double ns) {
    const auto mean = [](const SideMeans& side) {
        double sum = 0;
        for (const auto& [name, role] : side.roles) sum += role.computeNs;
        return text::durationText(sum / static_cast<double>(std::max<size_t>(1, side.roles.size())));
    };
    return fmt::format("compute takes {} -> {} a step, mean of all ranks; {} of it is on the critical path", mean(base),
                       mean(now), ns < 0 ? "less" : "more");
}

AttributionRow computeRow(const SideMeans& base, const SideMeans& now, double ns) {
    std::vector<std::string> roles = rolesThatGrew(base, now, &RoleSummary::computeNs, ns < 0);
    if (!explainsPath(growthOf(base, now, roles), base, now, ns)) roles.clear();  // the path only leads elsewhere
    AttributionRow row{StepPart::compute, "", ns};
    const bool haveKernelsChanged = explainsPath(growthOf(base, now, roles), base, now, ns);
    row.details =
        haveKernelsChanged ? kernelDetails(base, now, roles, ns) : std::vector{movedOnPathText(base, now, ns)};
    row.where = placeText(now, roles, row.ranks);
    row.what = kComputeRow + row.where;
    if (!haveKernelsChanged)
        row.what += fmt::format(": as long as before, {} of it on the critical path", ns < 0 ? "less" : "more");
    return row;
}

void addTransfers(const SideMeans& base, const SideMeans& now, std::vector<AttributionRow>& rows) {
    const std::map<std::string, TrafficSummary> before = byUse(base), after = byUse(now);
    for (const std::string& name : keysOf(base.pathTransferNs, now.pathTransferNs)) {
        AttributionRow row{StepPart::transfer, "transfer: " + name,
                           valueAt(now.pathTransferNs, name) - valueAt(base.pathTransferNs, name)};
        row.traffic = name;
        const auto a = before.find(name), b = after.find(name);
        if (a != before.end() && b != after.end())
            row.details.push_back(fmt::format(
                "{:.0f} -> {:.0f} messages, {} -> {}, {} -> {} of transfer a step and rank", a->second.count,
                b->second.count, text::bytesText(a->second.bytes), text::bytesText(b->second.bytes),
                text::durationText(a->second.transferNs), text::durationText(b->second.transferNs)));
        rows.push_back(std::move(row));
    }
}

/// Says what the hosts let the devices wait for, most changed first: why host rows changed.
std::vector<std::string> stallDetails(const SideMeans& base, const SideMeans& now, double direction) {
    const auto longest = [](const SideMeans& side) {
        std::map<std::string, double> stalls;  // by cause, over ranks
        for (const auto& [name, role] : side.roles)
            for (const auto& [cause, ns] : role.stallByCauseNs) stalls[cause] = std::max(stalls[cause], ns);
        return stalls;
    };
    return largestChanges(longest(base), longest(now), direction, "device idle for the host, ", "");
}

std::vector<AttributionRow> pathRows(const SideMeans& base, const SideMeans& now) {
    const auto growth = [&](StepPart part) {
        const std::string category(toText(part));
        return valueAt(now.pathNs, category) - valueAt(base.pathNs, category);
    };
    std::vector<AttributionRow> rows;
    const auto add = [&](StepPart part, const char* what) { rows.push_back({part, what, growth(part)}); };
    rows.push_back(computeRow(base, now, growth(StepPart::compute)));
    add(StepPart::gap, "gaps between dependent device work");
    add(StepPart::host, "host work and calls");
    for (size_t i = 1; i < rows.size(); ++i) rows[i].details = stallDetails(base, now, rows[i].ns);
    add(StepPart::launch, "from a launch to the device");
    add(StepPart::memory, "copies and sets");
    addTransfers(base, now, rows);
    return rows;
}

/// Takes the rank that waits least, which sets the pace, where there are no critical paths.
std::vector<AttributionRow> categoryRows(const SideMeans& base, const SideMeans& now) {
    const RoleSummary *before = nullptr, *after = nullptr;
    for (const auto& [name, role] : now.roles) {
        const auto other = base.roles.find(name);
        if (other == base.roles.end() || (after && role.exposedWaitNs >= after->exposedWaitNs)) continue;
        before = &other->second;
        after = &role;
    }
    if (!after) return {};
    std::vector<AttributionRow> rows;
    const std::string where = fmt::format("rank {} ({})", after->rank, after->role);
    const auto add = [&](StepPart part, const std::string& what, double ns) {
        rows.push_back({part, what, ns, where, {after->rank}});
    };
    add(StepPart::compute, "compute", after->computeNs - before->computeNs);
    add(StepPart::transfer, "exposed transfer", after->exposedTransferNs - before->exposedTransferNs);
    add(StepPart::wait, "waiting for other ranks", after->exposedWaitNs - before->exposedWaitNs);
    add(StepPart::memory, "copies and sets", after->memoryNs - before->memoryNs);
    double caused = 0;
    for (const std::string& cause : keysOf(before->idleByCauseNs, after->idleByCauseNs)) {
        const double ns = valueAt(after->idleByCauseNs, cause) - valueAt(before->idleByCauseNs, cause);
        add(StepPart::idle, "idle: " + cause, ns);
        caused += ns;
    }
    add(StepPart::idle, "idle, cause unknown", after->idleNs - before->idleNs - caused);
    return rows;
}

}  // namespace

std::string_view attributionScope(const std::vector<AttributionRow>& rows) {
    const auto ofAPath = [](const AttributionRow& row) {
        return !row.traffic.empty() || row.what.starts_with(kComputeRow) || row.part == StepPart::host ||
               row.part == StepPart::launch || row.part == StepPart::gap;
    };
    return std::ranges::any_of(rows, ofAPath) ? "on the critical path" : "of the rank that waits least";
}

std::vector<std::string> rolesThatGrew(const SideMeans& base, const SideMeans& now, double RoleSummary::*part,
                                       bool shrank) {
    std::vector<std::pair<double, std::string>> growth;
    for (const auto& [name, role] : now.roles) {
        const auto before = base.roles.find(name);
        if (before != base.roles.end())
            growth.emplace_back((role.*part - before->second.*part) * (shrank ? -1 : 1), name);
    }
    if (growth.size() < 2) return {};
    std::ranges::sort(growth);
    const double most = growth.back().first, middle = growth[(growth.size() - 1) / 2].first;
    if (most <= 0 || most - middle < kNotEveryone * most) return {};
    std::vector<std::string> roles;
    for (const auto& [ns, name] : growth)
        if (ns > middle + kStandsOut * (most - middle)) roles.push_back(name);
    return roles;
}

std::string placeText(const SideMeans& side, const std::vector<std::string>& roles, std::vector<int>& ranks) {
    ranks.clear();
    std::set<int> stages;
    for (const std::string& name : roles) {
        const auto role = side.roles.find(name);
        if (role == side.roles.end()) continue;
        ranks.push_back(role->second.rank);
        stages.insert(role->second.stage);
    }
    std::ranges::sort(ranks);
    if (ranks.empty()) return "all ranks";
    std::string text = text::ranksText(ranks);
    if (ranks.size() == 1 && roles.front() != text) return fmt::format("{} ({})", text, roles.front());
    const auto inStage =
        std::ranges::count_if(side.roles, [&](const auto& role) { return role.second.stage == *stages.begin(); });
    if (stages.size() == 1 && *stages.begin() >= 0 && inStage == static_cast<long>(ranks.size()))
        return fmt::format("{} (stage {})", text, *stages.begin());
    return text;
}

std::vector<AttributionRow> attributeChange(const SideMeans& base, const SideMeans& now, double changeNs) {
    std::vector<AttributionRow> rows = base.hasPath && now.hasPath ? pathRows(base, now) : categoryRows(base, now);
    double sum = 0, size = std::abs(changeNs);
    std::vector<AttributionRow> kept;
    for (AttributionRow& row : rows) {
        if (std::abs(row.ns) <= kWorthARow * std::abs(changeNs) || !std::isfinite(row.ns)) continue;
        sum += row.ns;
        size += std::abs(row.ns);
        kept.push_back(std::move(row));
    }
    std::ranges::stable_sort(
        kept, [](const AttributionRow& a, const AttributionRow& b) { return std::abs(a.ns) > std::abs(b.ns); });
    const double outliersNs =
        base.meanStepNs > 0 && now.meanStepNs > 0 ? changeNs - (now.meanStepNs - base.meanStepNs) : 0;
    if (std::abs(outliersNs) > kOutliersCount * std::abs(changeNs)) {
        kept.push_back({StepPart::rest,
                        outliersNs * changeNs > 0 ? "steps that are not typical, which changed less"
                                                  : "steps that are not typical, which changed more",
                        outliersNs});
        sum += outliersNs;
    }
    if (std::abs(changeNs - sum) > kResidue * size) kept.push_back({StepPart::rest, "not explained", changeNs - sum});
    return kept;
}

}  // namespace rankscope::compare
