// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/rank_summary.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <thread>

#include "analyzer/facts/host_activity.h"
#include "analyzer/facts/idle_causes.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/facts/summarised_kernels.h"
#include "collector/store/reader.h"

namespace rankscope::facts {
namespace {

/// Holds the names of the causes, as trace.db and the JSON have them, and for a reader; by IdleCause.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kIdleCauses{
    {{"other", "of unknown cause"},
     {"blocking_call", "the host blocks in a call"},
     {"late_launch", "the host launches late"},
     {"allocator", "the host is in the allocator"},
     {"input", "the host waits for input"},
     {"dependency", "launched work waits for other work"}}};

enum class Waits : uint8_t { known, likely };  // likely: estimates count as well

DeviceActivity activityOf(const RankEvents& events, Waits waits) {
    std::vector<Interval> transfer, wait;
    for (const CommTask& task : events.communication) {
        const int64_t untilNs = task.startNs + (waits == Waits::likely || task.waitKnown ? task.waitNs : 0);
        wait.push_back({task.startNs, untilNs});
        transfer.push_back({untilNs, task.endNs});
    }
    return {timesOf(events.compute), unite(std::move(transfer)), unite(std::move(wait)), timesOf(events.memory)};
}

std::vector<KernelStatistics> kernelStatistics(const RankEvents& events, const std::vector<StepWindow>& steps) {
    std::map<std::pair<KernelKey, int>, std::vector<double>> durations;
    for (const ComputeTask& task : events.compute) {
        const StepWindow* step = stepAt(steps, task.startNs);
        if (step == nullptr || step->warmUp) continue;
        durations[{task.key, step->step}].push_back(static_cast<double>(task.endNs - task.startNs));
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

/// Measures exposed time, and gives it to the first of several concurrent kernels.
class Exposed {
  public:
    int64_t take(int64_t startNs, int64_t endNs, const CoveredLength& compute) {
        const int64_t fromNs = std::max(startNs, m_untilNs);
        m_untilNs = std::max(m_untilNs, endNs);
        return endNs > fromNs ? endNs - fromNs - compute.within(fromNs, endNs) : 0;
    }

  private:
    int64_t m_untilNs = INT64_MIN;  // up to here it is given away
};

/// Tells what of a rank's transfers would be exposed had it waited for nobody. Compute stands still in the recording
/// where it waited, so that no single moment is the right one to look for compute that hides a transfer: of two the
/// smaller exposure counts. `queued`: transfers of a stream follow each other from the first on, as early as their data
/// and calls let them. `shifted`: each where it was, what was queued behind a kernel that waited as much earlier.
class Punctual {
  public:
    /// Returns what of this task, the next by start, would be exposed, ns.
    int64_t exposedNs(const CommTask& task, const CoveredLength& compute) {
        constexpr int64_t kQueuedNs = 10'000;  // from the end of a kernel to the start of one queued behind it
        Stream& stream = m_streams[task.streamId];
        const bool queued = stream.endNs != INT64_MIN && task.startNs - stream.endNs <= kQueuedNs;
        const bool waits = task.waitNs > kQueuedNs;
        const int64_t queuedNs =
            queued ? std::min(task.startNs, std::max({stream.queuedEndNs, task.readyNs, task.launchNs})) : task.startNs;
        const int64_t shiftedNs = queued && !waits ? task.startNs - stream.earlierNs : task.startNs;
        stream.endNs = task.endNs;
        stream.queuedEndNs = queuedNs + task.transferNs();
        if (waits || !queued) stream.earlierNs = task.waitNs;
        return std::min(m_queued.take(queuedNs, queuedNs + task.transferNs(), compute),
                        m_shifted.take(shiftedNs, shiftedNs + task.transferNs(), compute));
    }

  private:
    struct Stream {
        int64_t endNs = INT64_MIN;  // as recorded
        int64_t queuedEndNs = INT64_MIN;
        int64_t earlierNs = 0;  // by which the next in the queue would begin
    };
    std::map<int32_t, Stream> m_streams;
    Exposed m_queued, m_shifted;
};

/// Measures how much of each communication is exposed, and where the network was idle around it.
void measureExposure(std::vector<CommTask>& tasks, const CoveredLength& compute, const std::vector<StepWindow>& steps) {
    Exposed exposed;
    Punctual punctual;
    int64_t networkBusyUntil = INT64_MIN;
    const StepWindow* previous = nullptr;
    for (size_t i = 0; i < tasks.size(); ++i) {
        CommTask& task = tasks[i];
        const int64_t transferStart = task.startNs + task.waitNs;
        task.exposedWaitNs = exposed.take(task.startNs, transferStart, compute);
        task.exposedTransferNs = exposed.take(transferStart, task.endNs, compute);
        task.lateTransferNs = std::max<int64_t>(0, task.exposedTransferNs - punctual.exposedNs(task, compute));
        const StepWindow* step = stepAt(steps, task.startNs);
        if (step == nullptr) continue;
        if (!step->warmUp) task.step = step->step;
        if (step != previous) networkBusyUntil = std::max(networkBusyUntil, step->startNs);
        previous = step;
        task.computeBeforeNs = compute.within(step->startNs, task.startNs);
        if (task.readyNs >= 0) {
            task.readyNs = std::max(task.readyNs, step->startNs);
            task.computeAtReadyNs = compute.within(step->startNs, task.readyNs);
        }
        task.computeAtEndNs = compute.within(step->startNs, std::min(task.endNs, step->endNs()));
        task.idleNetworkBeforeNs = compute.within(networkBusyUntil, task.startNs);
        networkBusyUntil = std::max(networkBusyUntil, task.endNs);
        const int64_t nextStart = i + 1 < tasks.size() ? std::min(tasks[i + 1].startNs, step->endNs()) : step->endNs();
        task.idleNetworkAfterNs = compute.within(networkBusyUntil, nextStart);
    }
}

/// Adds to the attributions of the steps what they owe to other ranks' lateness, and what they cannot split. A kernel
/// counts in the step it starts in.
void addLateness(RankSummary& summary, const std::vector<StepWindow>& steps) {
    for (const CommTask& task : summary.communication) {
        const StepWindow* window = stepAt(steps, task.startNs);
        if (window == nullptr) continue;
        Attribution& step = summary.steps[static_cast<size_t>(window - steps.data())];
        step.lateTransferNs = std::min(step.exposedTransferNs, step.lateTransferNs + task.lateTransferNs);
        if (!task.splitKnown())
            step.unsplitNs =
                std::min(step.exposedCommNs(), step.unsplitNs + task.exposedWaitNs + task.exposedTransferNs);
    }
}

int32_t busiestStream(const std::vector<ComputeTask>& tasks) {
    std::map<int32_t, int64_t> time;
    for (const ComputeTask& task : tasks) time[task.streamId] += task.endNs - task.startNs;
    const auto most = std::ranges::max_element(time, {}, [](const auto& stream) { return stream.second; });
    return most == time.end() ? 0 : most->first;
}

}  // namespace

Attribution& Attribution::operator+=(const Attribution& other) {
    stepNs += other.stepNs;
    computeNs += other.computeNs;
    exposedWaitNs += other.exposedWaitNs;
    exposedTransferNs += other.exposedTransferNs;
    lateTransferNs += other.lateTransferNs;
    unsplitNs += other.unsplitNs;
    overlappedCommNs += other.overlappedCommNs;
    memoryNs += other.memoryNs;
    idleNs += other.idleNs;
    return *this;
}

Attribution attribute(const DeviceActivity& activity, int64_t startNs, int64_t endNs, IntervalSet* idle) {
    const IntervalSet compute = clip(activity.compute, startNs, endNs);
    const IntervalSet transfer = clip(activity.transfer, startNs, endNs);
    const IntervalSet communication = unite(transfer, clip(activity.wait, startNs, endNs));
    const IntervalSet busy = unite(compute, communication);
    const IntervalSet memory = subtract(clip(activity.memory, startNs, endNs), busy);
    const IntervalSet exposed = subtract(communication, compute);

    Attribution result;
    result.stepNs = std::max<int64_t>(0, endNs - startNs);
    result.computeNs = length(compute);
    // Where one kernel waits while another transfers, the rank communicates.
    result.exposedTransferNs = length(subtract(transfer, compute));
    result.exposedWaitNs = length(exposed) - result.exposedTransferNs;
    result.overlappedCommNs = length(communication) - length(exposed);
    result.memoryNs = length(memory);
    result.idleNs = result.stepNs - length(busy) - result.memoryNs;
    if (idle != nullptr) *idle = subtract({{startNs, endNs}}, unite(busy, memory));
    return result;
}

std::string_view toText(IdleCause cause) {
    return kIdleCauses[static_cast<size_t>(cause)].first;
}

RankSummary summarize(RankEvents events, const RankFacts& facts) {
    RankSummary summary;
    summary.rank = events.rank;
    summary.computeStreamId = busiestStream(events.compute);
    summary.kernels = kernelStatistics(events, facts.steps);
    summary.idleByCauseNs.assign(kIdleCauses.size(), 0);
    const DeviceActivity activity = activityOf(events, Waits::likely);
    // The timeline draws what is recorded, and so no estimates.
    const bool areKnown = std::ranges::all_of(events.communication, &CommTask::waitKnown);
    summary.activity = activityLine(areKnown ? activity : activityOf(events, Waits::known));
    const IdleCauses causes(events);
    for (const StepWindow& step : facts.steps) {
        IntervalSet idle;
        summary.steps.push_back(attribute(activity, step.startNs, step.endNs(), &idle));
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
    summary.contention = measureContention(events.compute, CoveredLength(timesOf(events.communication)), facts.steps);
    summary.communication = std::move(events.communication);
    summary.networkSends = std::move(events.networkSends);
    // They stay for all ranks: what the vectors grew beyond their rows would, too.
    summary.communication.shrink_to_fit();
    summary.networkSends.shrink_to_fit();
    summary.kernels.shrink_to_fit();
    summary.idleGaps.shrink_to_fit();
    measureExposure(summary.communication, CoveredLength(activity.compute), facts.steps);
    addLateness(summary, facts.steps);
    addSummarisedKernels(events, facts.steps, summary);
    return summary;
}

std::string_view inWords(std::string_view idleCause) {
    const auto cause = std::ranges::find(kIdleCauses, idleCause, [](const auto& names) { return names.first; });
    return cause == kIdleCauses.end() ? kIdleCauses[0].second : cause->second;
}

std::vector<const RankFacts*> recordedRanks(const TraceFacts& facts) {
    std::vector<const RankFacts*> recorded;
    for (const RankFacts& rank : facts.ranks)
        if (rank.recorded) recorded.push_back(&rank);
    return recorded;
}

void summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts,
                    const std::vector<const RankFacts*>& recorded, unsigned workers,
                    const std::function<void(const RankEvents&)>& visit, const std::function<void(RankSummary)>& take) {
    if (recorded.empty()) return;
    if (workers == 0) workers = std::max(1u, std::thread::hardware_concurrency());
    workers = std::min<unsigned>(workers, static_cast<unsigned>(recorded.size()));

    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failures(workers);
    const auto work = [&](unsigned worker) {
        try {
            // By whoever read `facts`; whose ranks these are has their shards.
            store::TraceReader reader(trace, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
            for (size_t i = next++; i < recorded.size(); i = next++) {
                RankEvents events = readRankEvents(reader, facts, recorded[i]->rank);
                if (visit) visit(events);
                RankSummary summary = summarize(std::move(events), *recorded[i]);
                summary.memory = readMemoryPeaks(reader, recorded[i]->rank);
                take(std::move(summary));
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
}

}  // namespace rankscope::facts
