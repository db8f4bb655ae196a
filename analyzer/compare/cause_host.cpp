// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

constexpr double kIsWhy = 0.4;  // of the time lost to the host that stalls must explain
constexpr double kIsToo = 0.2;  // of the growth of all stalls: a cause with less is none of its own

constexpr double kWanders = 0.7;  // the same for stalls that no rank has often: all ranks together

struct StallGrowth {
    std::string cause;
    double ns = 0;  // on the rank where it grew most
    std::string role;
};

/// Growth of all stalls, summed over ranks: what stalls that hit one rank today and another tomorrow cost the job.
double wanderingGrowth(const SideMeans& base, const SideMeans& now) {
    const auto sum = [](const SideMeans& side) {
        double ns = 0;
        for (const auto& [name, role] : side.roles)
            for (const auto& [cause, stall] : role.stallByCauseNs) ns += stall;
        return ns;
    };
    return sum(now) - sum(base);
}

/// Per cause the largest growth over ranks, most first.
std::vector<StallGrowth> stallGrowth(const SideMeans& base, const SideMeans& now) {
    std::map<std::string, StallGrowth> byCause;
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end()) continue;
        for (const auto& [cause, ns] : after.stallByCauseNs) {
            const auto was = before->second.stallByCauseNs.find(cause);
            const double more = ns - (was == before->second.stallByCauseNs.end() ? 0 : was->second);
            StallGrowth& growth = byCause.try_emplace(cause, StallGrowth{cause, 0, name}).first->second;
            if (more > growth.ns) growth = {cause, more, name};
        }
    }
    std::vector<StallGrowth> rows;
    for (const auto& [cause, growth] : byCause) rows.push_back(growth);
    std::stable_sort(rows.begin(), rows.end(), [](const StallGrowth& a, const StallGrowth& b) { return a.ns > b.ns; });
    return rows;
}

struct Meaning {
    const char *kind, *diagnosis, *text;
};

Meaning meaningOf(const std::string& cause) {
    if (cause == "input") return {"slow_input", diagnose::kInput.id, "the next batch comes later"};
    if (cause == "blocking_call")
        return {"synchronisation", diagnose::kSynchronisation.id,
                "the host waits for the device more, and leaves it idle"};
    if (cause == "allocator") return {"allocator", diagnose::kAllocator.id, "the allocator stops the device"};
    if (cause == "late_launch") return {"launch_bound", diagnose::kLaunchBound.id, "the host launches too late"};
    return {"stalls", diagnose::kTransient.id, "the host stands still"};
}

ChangeCause causeOfStall(const StallGrowth& growth, double ns, bool reversed) {
    const Meaning meaning = meaningOf(growth.cause);
    ChangeCause cause{meaning.kind,
                      fmt::format("{}: {} more a step", meaning.text, text::durationText(growth.ns)),
                      meaning.diagnosis,
                      "all ranks",
                      {},
                      ns,
                      {}};
    cause.evidence.push_back(fmt::format("device idle for the host ({}): {} {} a step, most on {}", growth.cause,
                                         text::durationText(growth.ns), reversed ? "less" : "more", growth.role));
    return cause;
}

/// Stalls that no rank has often.
ChangeCause causeOfAllStalls(const SideMeans& base, const SideMeans& now, double ns) {
    const double wandering = wanderingGrowth(base, now);
    if (wandering < kWanders * ns) return {"unknown", "", "", "all ranks", {}, ns, {}};
    return {"stalls",
            fmt::format("hosts stand still now and then, one or another: {} more a step, all ranks together",
                        text::durationText(wandering)),
            diagnose::kTransient.id,
            "all ranks",
            {},
            ns,
            {}};
}

}  // namespace

std::vector<ChangeCause> hostCauses(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    std::vector<StallGrowth> growth = stallGrowth(base, now);
    double sum = 0;
    for (const StallGrowth& row : growth) sum += row.ns;
    std::erase_if(growth, [&](const StallGrowth& row) { return row.ns < kIsToo * sum; });
    if (growth.empty() || sum < kIsWhy * ns) return {causeOfAllStalls(base, now, ns)};
    sum = 0;
    for (const StallGrowth& row : growth) sum += row.ns;
    std::vector<ChangeCause> causes;
    for (const StallGrowth& row : growth) causes.push_back(causeOfStall(row, ns * row.ns / sum, reversed));
    return causes;
}

}  // namespace rankscope::compare
