// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

constexpr double kIsWhy = 0.4;  // of the time lost to the host that one cause of stalls must explain

constexpr double kWanders = 0.7;  // the same for stalls that no rank has often: all ranks together

struct StallGrowth {
    std::string cause;
    double ns = 0;      // on the rank where it grew most
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
    if (cause == "input") return {"slow_input", "RS403", "the next batch comes later"};
    if (cause == "blocking_call") return {"synchronisation", "RS402", "the host waits for the device more, and leaves it idle"};
    if (cause == "allocator") return {"allocator", "RS404", "the allocator stops the device"};
    if (cause == "late_launch") return {"launch_bound", "RS401", "the host launches too late"};
    return {"stalls", "RS303", "the host stands still"};
}

}  // namespace

ChangeCause hostCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.kind = "unknown";
    cause.where = "all ranks";
    const std::vector<StallGrowth> growth = stallGrowth(base, now);
    if (growth.empty() || growth.front().ns < kIsWhy * ns) {
        const double wandering = wanderingGrowth(base, now);
        if (wandering < kWanders * ns) return cause;
        cause.kind = "stalls";
        cause.diagnosis = "RS303";
        cause.text = fmt::format("hosts stand still now and then, one or another: {} more a step, all ranks together", durationText(wandering));
        return cause;
    }
    const Meaning meaning = meaningOf(growth.front().cause);
    cause.kind = meaning.kind;
    cause.diagnosis = meaning.diagnosis;
    cause.text = fmt::format("{}: {} more a step", meaning.text, durationText(growth.front().ns));
    for (const StallGrowth& row : growth)
        if (row.ns >= kIsWhy * ns) cause.evidence.push_back(fmt::format("device idle for the host ({}): {} {} a step, most on {}", row.cause, durationText(row.ns), reversed ? "less" : "more", row.role));
    return cause;
}

}  // namespace rankscope::analyzer
