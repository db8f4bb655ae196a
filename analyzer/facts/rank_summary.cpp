// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/rank_summary.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <thread>

#include "analyzer/facts/host_activity.h"
#include "analyzer/facts/idle_causes.h"
#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/statistics.h"
#include "collector/store/reader.h"

namespace rankscope::facts {
namespace {

/// Index of the step a time lies in, -1 outside.
int indexAt(const std::vector<StepWindow>& steps, int64_t timeNs) {
    const auto after = std::upper_bound(steps.begin(), steps.end(), timeNs,
                                        [](int64_t t, const StepWindow& s) { return t < s.startNs; });
    if (after == steps.begin()) return -1;
    const auto& step = *(after - 1);
    return timeNs < step.startNs + step.durNs ? static_cast<int>(after - 1 - steps.begin()) : -1;
}

DeviceActivity activityOf(const RankEvents& events) {
    std::vector<Interval> compute, transfer, wait, memory;
    for (const ComputeTask& task : events.compute) compute.push_back({task.startNs, task.endNs});
    for (const CommTask& task : events.communication) {
        wait.push_back({task.startNs, task.startNs + task.waitNs});
        transfer.push_back({task.startNs + task.waitNs, task.endNs});
    }
    for (const MemoryTask& task : events.memory) memory.push_back({task.startNs, task.endNs});
    return {unite(std::move(compute)), unite(std::move(transfer)), unite(std::move(wait)), unite(std::move(memory))};
}

std::vector<KernelStatistics> kernelStatistics(const RankEvents& events, const std::vector<StepWindow>& steps) {
    std::map<std::pair<KernelKey, int>, std::vector<double>> durations;
    for (const ComputeTask& task : events.compute) {
        const int index = indexAt(steps, task.startNs);
        if (index < 0 || steps[static_cast<size_t>(index)].warmUp) continue;
        durations[{task.key, steps[static_cast<size_t>(index)].step}].push_back(
            static_cast<double>(task.endNs - task.startNs));
    }
    std::vector<KernelStatistics> result;
    for (auto& [where, values] : durations) {
        KernelStatistics statistics{where.first, where.second, static_cast<int32_t>(values.size())};
        for (double value : values) statistics.totalNs += static_cast<int64_t>(value);
        statistics.medianNs = median(std::move(values));
        result.push_back(statistics);
    }
    return result;
}

/// What of a rank's transfers would be exposed had it waited for nobody. Compute stands still in the recording where it
/// waited, so that no single moment is the right one to look for compute that hides a transfer: of two the kinder one
/// counts. `inLine`: transfers of a stream follow each other from the first on, as early as their data and calls let
/// them. `shifted`: each where it was, what stood in line behind a kernel that waited as much earlier.
class Punctual {
  public:
    /// Of this task, the next by start, ns.
    int64_t exposedNs(const CommTask& task, const CoveredLength& compute) {
        constexpr int64_t kInLineNs =
            10'000;  // from the end of one kernel to the start of the next that was queued behind it
        Stream& stream = m_streams[task.streamId];
        const bool queued = stream.endNs != INT64_MIN && task.startNs - stream.endNs <= kInLineNs;
        const bool waits = task.waitNs > kInLineNs;
        const int64_t inLineNs =
            queued ? std::min(task.startNs, std::max({stream.inLineEndNs, task.readyNs, task.launchNs})) : task.startNs;
        const int64_t shiftedNs = queued && !waits ? task.startNs - stream.earlierNs : task.startNs;
        stream.endNs = task.endNs;
        stream.inLineEndNs = inLineNs + task.transferNs();
        if (waits || !queued) stream.earlierNs = task.waitNs;
        return std::min(uncovered(inLineNs, task.transferNs(), compute, m_inLineUntilNs),
                        uncovered(shiftedNs, task.transferNs(), compute, m_shiftedUntilNs));
    }

  private:
    struct Stream {
        int64_t endNs = INT64_MIN;  // as recorded
        int64_t inLineEndNs = INT64_MIN;
        int64_t earlierNs = 0;  // by which the next in line would begin
    };
    /// Exposed time is given to the first of several concurrent transfers.
    static int64_t uncovered(int64_t startNs, int64_t ns, const CoveredLength& compute, int64_t& untilNs) {
        const int64_t endNs = startNs + ns;
        const int64_t fromNs = std::max(startNs, untilNs);
        untilNs = std::max(untilNs, endNs);
        return endNs > fromNs ? endNs - fromNs - compute.within(fromNs, endNs) : 0;
    }

    std::map<int32_t, Stream> m_streams;
    int64_t m_inLineUntilNs = INT64_MIN, m_shiftedUntilNs = INT64_MIN;
};

/// How much of each communication is exposed, and where the network was idle around it.
void measureExposure(std::vector<CommTask>& tasks, const CoveredLength& compute, const std::vector<StepWindow>& steps) {
    int64_t claimedUntil = INT64_MIN;  // exposed time is given to the first of several concurrent kernels
    Punctual punctual;
    int64_t networkBusyUntil = INT64_MIN;
    int previousIndex = -1;
    for (size_t i = 0; i < tasks.size(); ++i) {
        CommTask& task = tasks[i];
        const int64_t transferStart = task.startNs + task.waitNs;
        const auto exposed = [&](int64_t from, int64_t to) {
            from = std::max(from, claimedUntil);
            return to > from ? to - from - compute.within(from, to) : 0;
        };
        task.exposedWaitNs = exposed(task.startNs, transferStart);
        task.exposedTransferNs = exposed(transferStart, task.endNs);
        claimedUntil = std::max(claimedUntil, task.endNs);
        task.lateTransferNs = std::max<int64_t>(0, task.exposedTransferNs - punctual.exposedNs(task, compute));
        const int index = indexAt(steps, task.startNs);
        if (index < 0) continue;
        const StepWindow& window = steps[static_cast<size_t>(index)];
        if (!window.warmUp) task.step = window.step;
        if (index != previousIndex) networkBusyUntil = std::max(networkBusyUntil, window.startNs);
        previousIndex = index;
        task.computeBeforeNs = compute.within(window.startNs, task.startNs);
        if (task.readyNs >= 0) {
            task.readyNs = std::max(task.readyNs, window.startNs);
            task.computeAtReadyNs = compute.within(window.startNs, task.readyNs);
        }
        task.computeAtEndNs = compute.within(window.startNs, std::min(task.endNs, window.startNs + window.durNs));
        task.idleNetworkBeforeNs = compute.within(networkBusyUntil, task.startNs);
        networkBusyUntil = std::max(networkBusyUntil, task.endNs);
        const int64_t stepEnd = window.startNs + window.durNs;
        const int64_t nextStart = i + 1 < tasks.size() ? std::min(tasks[i + 1].startNs, stepEnd) : stepEnd;
        task.idleNetworkAfterNs = compute.within(networkBusyUntil, nextStart);
    }
}

/// What the attributions of the steps owe to other ranks' lateness, and what they cannot split. A kernel counts in the
/// step it starts in.
void addLateness(RankSummary& summary, const std::vector<StepWindow>& steps) {
    for (const CommTask& task : summary.communication) {
        const int index = indexAt(steps, task.startNs);
        if (index < 0) continue;
        Attribution& step = summary.steps[static_cast<size_t>(index)];
        step.lateTransferNs = std::min(step.exposedTransferNs, step.lateTransferNs + task.lateTransferNs);
        if (!task.splitKnown())
            step.unsplitNs =
                std::min(step.exposedCommNs(), step.unsplitNs + task.exposedWaitNs + task.exposedTransferNs);
    }
}

int32_t busiestStream(const std::vector<ComputeTask>& tasks) {
    std::map<int32_t, int64_t> time;
    for (const ComputeTask& task : tasks) time[task.streamId] += task.endNs - task.startNs;
    const auto most =
        std::max_element(time.begin(), time.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == time.end() ? 0 : most->first;
}

}  // namespace

std::string_view toText(IdleCause cause) {
    switch (cause) {
        case IdleCause::blockingCall:
            return "blocking_call";
        case IdleCause::lateLaunch:
            return "late_launch";
        case IdleCause::allocator:
            return "allocator";
        case IdleCause::input:
            return "input";
        case IdleCause::dependency:
            return "dependency";
        case IdleCause::other:
            break;
    }
    return "other";
}

RankSummary summarize(RankEvents events, const RankFacts& facts) {
    RankSummary summary;
    summary.rank = events.rank;
    summary.computeStreamId = busiestStream(events.compute);
    summary.kernels = kernelStatistics(events, facts.steps);
    summary.idleByCauseNs.assign(6, 0);
    const DeviceActivity activity = activityOf(events);
    const IdleCauses causes(events);
    for (size_t i = 0; i < facts.steps.size(); ++i) {
        const StepWindow& step = facts.steps[i];
        IntervalSet idle;
        summary.steps.push_back(attribute(activity, step.startNs, step.startNs + step.durNs, &idle));
        for (const Interval& gap : idle) {
            const int64_t duration = gap.endNs - gap.startNs;
            const IdleCause cause = causes.of(gap, step.startNs).cause;
            if (!step.warmUp) summary.idleByCauseNs[static_cast<size_t>(cause)] += duration;
            if (duration >= RankSummary::kShortestGapNs)
                summary.idleGaps.push_back({0, step.step, gap.startNs, duration, cause});
        }
    }
    summary.lostSteps = stepsWithLostRecords(events, facts);
    summary.hostIsKnown = causes.hostIsKnown();
    summary.hostStalls = hostStalls(activity, causes, facts);
    summary.hostPauses = hostPauses(events, activity, facts);
    measurePauses(summary.hostPauses, summary.hostStalls);
    summary.hostUse = hostUse(events, activity, facts);
    std::vector<Interval> communication;
    for (const CommTask& task : events.communication) communication.push_back({task.startNs, task.endNs});
    summary.contention = measureContention(events.compute, CoveredLength(unite(std::move(communication))), facts.steps);
    summary.communication = std::move(events.communication);
    summary.networkSends = std::move(events.networkSends);
    measureExposure(summary.communication, CoveredLength(activity.compute), facts.steps);
    addLateness(summary, facts.steps);
    return summary;
}

std::string_view inWords(std::string_view idleCause) {
    if (idleCause == "blocking_call") return "the host blocks in a call";
    if (idleCause == "late_launch") return "the host launches late";
    if (idleCause == "allocator") return "the host is in the allocator";
    if (idleCause == "input") return "the host waits for input";
    if (idleCause == "dependency") return "launched work waits for other work";
    return "of unknown cause";
}

std::vector<RankSummary> summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts, unsigned workers,
                                        const std::function<void(const RankEvents&)>& visit) {
    std::vector<const RankFacts*> recorded;
    for (const RankFacts& rank : facts.ranks)
        if (rank.recorded) recorded.push_back(&rank);
    std::vector<RankSummary> summaries(recorded.size());
    if (recorded.empty()) return summaries;
    if (workers == 0) workers = std::max(1u, std::thread::hardware_concurrency());
    workers = std::min<unsigned>(workers, static_cast<unsigned>(recorded.size()));

    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failures(workers);
    const auto work = [&](unsigned worker) {
        try {
            store::TraceReader reader(trace);
            for (size_t i = next++; i < recorded.size(); i = next++) {
                RankEvents events = readRankEvents(reader, facts, recorded[i]->rank);
                if (visit) visit(events);
                summaries[i] = summarize(std::move(events), *recorded[i]);
            }
        } catch (...) {
            failures[worker] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (unsigned worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
        work(0);
    }
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
    return summaries;
}

}  // namespace rankscope::facts
