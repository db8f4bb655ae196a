// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/host_activity.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs406 {
namespace {

constexpr Threshold kFewestPauses{"fewest pauses", 5, "of a rank", "fewer are accidents"};
constexpr Threshold kFewestKinds{"fewest kinds", 4, "different operations and calls",
                                 "a lock, a file or a full queue is found in one or two"};
constexpr Threshold kLargestShare{"largest share", 0.5, "of a rank's paused time in one of them",
                                  "above it that one is the matter"};
constexpr Threshold kTogetherShare{"together", 0.5, "of a rank's paused time in which all others pause",
                                   "something stops them all then: a file system, a profiler"};

/// The pauses of one rank in the analysed steps.
struct Pauses {
    std::vector<const facts::HostPause*> all;
    double ns = 0;
    std::map<int32_t, double> byName;  // ns
    facts::IntervalSet times;

    bool starved() const {
        if (static_cast<int>(all.size()) < kFewestPauses || static_cast<int>(byName.size()) < kFewestKinds)
            return false;
        return std::all_of(byName.begin(), byName.end(),
                           [this](const auto& entry) { return entry.second <= kLargestShare * ns; });
    }
};

Pauses pausesOf(const facts::RankSummary& rank) {
    Pauses pauses;
    std::vector<facts::Interval> times;
    for (const facts::HostPause& pause : rank.hostPauses) {
        if (pause.step < 0) continue;
        pauses.all.push_back(&pause);
        pauses.ns += static_cast<double>(pause.ownNs);
        pauses.byName[pause.nameId] += static_cast<double>(pause.ownNs);
        times.push_back({pause.startNs, pause.endNs});
    }
    pauses.times = facts::unite(std::move(times));
    return pauses;
}

/// Share of a rank's paused time in which every other rank pauses, too; 0 for a rank alone.
double togetherShare(const std::vector<Pauses>& ranks, size_t rank) {
    if (ranks.size() < 2) return 0;
    facts::IntervalSet together = ranks[rank].times;
    for (size_t r = 0; r < ranks.size(); ++r)
        if (r != rank) together = facts::intersect(together, ranks[r].times);
    return static_cast<double>(facts::length(together)) /
           std::max(1.0, static_cast<double>(facts::length(ranks[rank].times)));
}

/// What a step loses by the pauses. Between two exchanges that everybody takes part in, the rank that lost most holds
/// the others up; behind the next exchange it may be another's turn, so that the longest of each stretch add up.
double lostInStep(const job::Analysis& analysis, const std::vector<size_t>& starved, int step) {
    std::set<int64_t> everybody;  // communicators of all recorded ranks
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        const auto has = [&ranks = communicator.ranks](const facts::RankSummary& rank) {
            return std::find(ranks.begin(), ranks.end(), rank.rank) != ranks.end();
        };
        if (std::all_of(analysis.ranks.begin(), analysis.ranks.end(), has)) everybody.insert(id);
    }
    std::vector<int64_t> exchanges;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::CommTask& task : rank.communication)
            if (task.step == step && task.waitNs > 0 && everybody.count(task.communicatorId) != 0)
                exchanges.push_back(task.endNs);
    std::sort(exchanges.begin(), exchanges.end());
    std::map<size_t, double> longest;  // by number of the exchange it is in front of
    for (size_t r : starved) {
        std::map<size_t, double> own;
        for (const facts::HostStall& stall : analysis.ranks[r].hostStalls)
            if (stall.step == step && stall.pausedNs > 0)
                own[static_cast<size_t>(std::lower_bound(exchanges.begin(), exchanges.end(), stall.endNs) -
                                        exchanges.begin())] += static_cast<double>(stall.pausedNs);
        for (const auto& [stretch, ns] : own) longest[stretch] = std::max(longest[stretch], ns);
    }
    double sum = 0;
    for (const auto& [stretch, ns] : longest) sum += ns;
    return sum;
}

std::string pausesText(const job::Analysis& analysis, const facts::RankSummary& rank, const Pauses& pauses) {
    std::vector<const facts::HostPause*> longest = pauses.all;
    std::stable_sort(longest.begin(), longest.end(),
                     [](const facts::HostPause* a, const facts::HostPause* b) { return a->ownNs > b->ownNs; });
    std::string examples;
    std::vector<int32_t> named;
    for (const facts::HostPause* pause : longest) {
        if (named.size() == 3) break;
        if (std::find(named.begin(), named.end(), pause->nameId) != named.end()) continue;
        named.push_back(pause->nameId);
        examples += fmt::format("{}{} {:.0f} ms (usually {:.0f} us)", examples.empty() ? "" : ", ",
                                nameOr(analysis, pause->nameId, "a call"), static_cast<double>(pause->ownNs) / 1e6,
                                static_cast<double>(pause->usualNs) / 1e3);
    }
    return fmt::format(
        "rank {}: {} pauses of {:.0f} ms or more, {:.0f} ms in all, in {} different operations and calls: {}",
        rank.rank, pauses.all.size(), static_cast<double>(facts::PauseThresholds::kShortestNs) / 1e6, pauses.ns / 1e6,
        pauses.byName.size(), examples);
}

void detectStarvedHost(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    std::vector<Pauses> pauses;
    for (const facts::RankSummary& rank : analysis.ranks) pauses.push_back(pausesOf(rank));
    std::vector<size_t> starved;
    for (size_t r = 0; r < pauses.size(); ++r)
        if (pauses[r].starved() && togetherShare(pauses, r) <= kTogetherShare) starved.push_back(r);
    if (starved.empty()) return;

    HostCost cost = hostCost(analysis, [&](const facts::RankSummary& rank, int step) {
        Stalled stalled;
        if (std::find(starved.begin(), starved.end(), static_cast<size_t>(&rank - analysis.ranks.data())) ==
            starved.end())
            return stalled;
        for (const facts::HostStall& stall : rank.hostStalls) {
            if (stall.step != step || stall.pausedNs <= 0) continue;
            stalled.ns += static_cast<double>(stall.pausedNs);
        }
        return stalled;
    });
    for (size_t s = 0; s < analysis.steps.size(); ++s)
        cost.costNs[s] = std::max(cost.costNs[s], lostInStep(analysis, starved, analysis.steps[s]));
    job::Finding finding;
    finding.id = "RS406";
    if (!describeHostCost(analysis, cost, finding)) {
        // Pauses hit a step now and then, too.
        HostCost rare = cost;
        if (!describeIntermittentCost(analysis, rare, finding)) return;
        cost = std::move(rare);
    }
    double sumNs = 0;
    size_t count = 0;
    for (size_t r : starved) {
        sumNs += pauses[r].ns;
        count += pauses[r].all.size();
    }
    std::vector<int> pausing;
    for (size_t r : starved) pausing.push_back(analysis.ranks[r].rank);
    finding.cause = fmt::format(
        "the hosts of {} stand still inside operations and calls that take microseconds, different ones each time{}: "
        "processes that do not get the cores they need; {} hold{} up the step",
        ranksText(analysis, pausing), starved.size() > 1 ? " and not all at the same time" : "",
        ranksText(analysis, finding.ranks), finding.ranks.size() == 1 ? "s" : "");
    const auto describe = [&](int rank) {
        for (size_t r : starved)
            if (analysis.ranks[r].rank == rank)
                finding.evidence.facts.push_back(
                    pausesText(analysis, analysis.ranks[r], pauses[r]) +
                    fmt::format("; its device stands still for {:.0f} ms of a step meanwhile",
                                facts::median(cost.stallNs[r]) / 1e6));
    };
    std::vector<int> byStall = finding.ranks;
    std::stable_sort(byStall.begin(), byStall.end(), [&](int a, int b) {
        const auto stallOf = [&](int rank) {
            return cost.medianStallNs[static_cast<size_t>(analysis.findRank(rank) - analysis.ranks.data())];
        };
        return stallOf(a) > stallOf(b);
    });
    for (size_t i = 0; i < byStall.size() && i < 4; ++i) describe(byStall[i]);
    finding.evidence.facts.push_back(
        fmt::format("all together: {} pauses on {}, {:.0f} ms", count, ranksText(analysis, pausing), sumNs / 1e6));
    finding.evidence.numbers.emplace_back("pauses", static_cast<double>(count));
    finding.evidence.numbers.emplace_back("paused_ns", sumNs);
    for (size_t i = 0; i < byStall.size() && finding.evidence.rows.size() < 6; ++i) {
        const auto r = static_cast<size_t>(analysis.findRank(byStall[i]) - analysis.ranks.data());
        std::vector<const facts::HostPause*> longest = pauses[r].all;
        std::stable_sort(longest.begin(), longest.end(),
                         [](const facts::HostPause* a, const facts::HostPause* b) { return a->ownNs > b->ownNs; });
        for (size_t p = 0; p < longest.size() && p < 3; ++p)
            finding.evidence.rows.push_back({longest[p]->call ? "api_call" : "nvtx", longest[p]->id, byStall[i],
                                             fmt::format("stands still for {:.1f} ms, usually {:.0f} us",
                                                         static_cast<double>(longest[p]->ownNs) / 1e6,
                                                         static_cast<double>(longest[p]->usualNs) / 1e3)});
    }
    finding.fix = {
        "give every rank cores of its own: --cpus-per-task (Slurm), the container's or cgroup's CPU quota (cpu.max; "
        "look at nr_throttled in cpu.stat), numactl or taskset per rank",
        "OMP_NUM_THREADS=1 and fewer DataLoader workers where ranks times threads exceed the cores; keep other "
        "processes off the host (top, pidstat -w: involuntary switches)",
    };
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForStarvedHost(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

Changes noPauses(const job::Analysis&, const job::Finding& f) {
    return noStalls("pauses", f);
}

}  // namespace

const Diagnosis kStarved{
    .id = "RS406",
    .title = "host starved",
    .definition =
        "Hosts stand still inside operations and calls that usually take microseconds, different ones each time, and "
        "not all ranks at the same time: the process does not get the cores it needs. Counted is the time in which the "
        "device has nothing to do meanwhile, between two exchanges that of the rank that lost most.",
    .thresholds = {{"pause", facts::PauseThresholds::kFactor, "x the median of the same name",
                    "no load of the same work varies so much"},
                   {"shortest pause", static_cast<double>(facts::PauseThresholds::kShortestNs) / 1e6, "ms",
                    "shorter ones are page faults, locks and interrupts"},
                   {"usual time", static_cast<double>(facts::PauseThresholds::kLongestUsualNs) / 1e3, "us at most",
                    "what usually takes longer does real work, which may vary"},
                   kFewestPauses,
                   kFewestKinds,
                   kLargestShare,
                   kTogetherShare},
    .falsePositives =
        "Garbage collection of Python on some ranks looks alike: gc.freeze() tells. Calls that may wait for the device "
        "are left out, and so are first uses.",
    .fix = "Cores for each rank, cgroup quota, pinning, OMP_NUM_THREADS, no other processes on the host.",
    .cureAt = CureAt::machine,
    .hint =
        "Blank on one rank while a call that takes microseconds goes on and on: its host has no core to run on. Framed "
        "are such pauses.",
    .detect = detectStarvedHost,
    .missing = missingForStarvedHost,
    .repair = noPauses,
};

}  // namespace rs406
}  // namespace rankscope::diagnose
