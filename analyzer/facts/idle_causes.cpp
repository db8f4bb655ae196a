// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/idle_causes.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>

namespace rankscope::facts {
namespace {

// A call that returned sooner found its work done: the time of the call itself.
constexpr int64_t kShortestWaitNs = 20'000;
constexpr int kMostRanges = 4096;  // looked back over: far back only long ranges are still open
// An import keeps what the host did in longer standstills only; shorter ones are a launch's.
constexpr int64_t kShortestDoingNs = 1'000'000;
constexpr int64_t kLaunchSlackNs = 10'000;  // launches are no better timed than this on real machines

bool isHosts(IdleCause cause) {
    return cause != IdleCause::other && cause != IdleCause::dependency;
}

}  // namespace

IdleCauses::IdleCauses(const RankEvents& events)
    : m_events(events),
      m_activity(events),
      m_allocating(timesOf(events.hostCalls | std::views::filter(&HostCall::allocates))),
      m_loading(unite(timesOf(events.ranges | std::views::filter(&HostRange::loadsData)),
                      timesOf(events.operations | std::views::filter(&HostRange::loadsData)))),
      m_inCuda(timesOf(events.hostCalls)) {
    std::unordered_map<int64_t, const HostCall*> submissions;
    for (const HostCall& call : events.hostCalls) {
        if (call.waits || call.allocates()) m_waiting.push_back(&call);
        if (!call.submits()) continue;
        m_submissions.push_back(&call);
        if (call.correlation >= 0) submissions.emplace(call.correlation, &call);
    }
    std::ranges::stable_sort(m_waiting, {}, &HostCall::endNs);
    std::vector<int64_t> latencies;
    const auto add = [&](int64_t startNs, int64_t endNs, int64_t correlation) {
        const auto found = correlation >= 0 ? submissions.find(correlation) : submissions.end();
        m_starts.push_back({startNs, endNs, found == submissions.end() ? nullptr : found->second});
        if (found != submissions.end()) latencies.push_back(std::max<int64_t>(0, startNs - found->second->endNs));
    };
    for (const ComputeTask& task : events.compute) add(task.startNs, task.endNs, task.correlation);
    for (const CommTask& task : events.communication) add(task.startNs, task.endNs, task.correlation);
    for (const MemoryTask& task : events.memory) add(task.startNs, task.endNs, task.correlation);
    std::ranges::stable_sort(m_starts, {}, &Start::deviceStartNs);
    for (const Start& start : m_starts)
        m_busyUntilNs.push_back(std::max(m_busyUntilNs.empty() ? INT64_MIN : m_busyUntilNs.back(), start.deviceEndNs));
    if (latencies.empty()) return;
    // Most operations queue behind others; those that do not are the fast ones.
    const auto low = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 20);
    std::nth_element(latencies.begin(), low, latencies.end());
    m_latencyNs = *low;
}

const IdleCauses::Start* IdleCauses::endOf(const Interval& gap) const {
    const auto next = std::ranges::lower_bound(m_starts, gap.endNs, {}, &Start::deviceStartNs);
    if (next == m_starts.end()) return nullptr;
    // Of operations that begin together the last one submitted is the one that was waited for.
    const Start* last = &*next;
    for (auto at = next; at != m_starts.end() && at->deviceStartNs == next->deviceStartNs; ++at)
        if (at->submission != nullptr &&
            (last->submission == nullptr || at->submission->endNs > last->submission->endNs))
            last = &*at;
    return last;
}

bool IdleCauses::foundIdle(const HostCall& call) const {
    const auto after = std::ranges::lower_bound(m_starts, call.startNs, {}, &Start::deviceStartNs);
    return after == m_starts.begin() || m_busyUntilNs[static_cast<size_t>(after - m_starts.begin()) - 1] < call.startNs;
}

const HostCall* IdleCauses::drain(const HostCall& submission, int64_t idleFromNs) const {
    auto call = std::ranges::upper_bound(m_waiting, submission.startNs, {}, &HostCall::endNs);
    // The latest call that waited for work still running counts: calls behind it found an idle device and cost nothing
    // but themselves.
    for (int looked = 0; call != m_waiting.begin() && looked < 64; ++looked) {
        const HostCall* candidate = *--call;
        if (candidate->startNs >= idleFromNs) continue;
        if (candidate->endNs < idleFromNs && candidate->endNs - candidate->startNs < kShortestWaitNs) return nullptr;
        // What was submitted since then kept the device busy: the wait is over and done with.
        const auto after = std::ranges::lower_bound(m_submissions, candidate->endNs, {}, &HostCall::startNs);
        const bool first = after == m_submissions.end() || (*after)->startNs >= submission.startNs;
        // A copy in front of which the device was idle waited for itself: the host was late before it came there.
        const bool ownOnly = candidate->kind == store::ApiKind::copy && foundIdle(*candidate);
        return first && !ownOnly ? candidate : nullptr;
    }
    return nullptr;
}

int32_t IdleCauses::rangeAt(int32_t thread, int64_t timeNs) const {
    auto range = std::ranges::upper_bound(m_events.ranges, timeNs, {}, &HostRange::startNs);
    // Ranges nest: the last one to begin that still runs is the innermost.
    for (int looked = 0; range != m_events.ranges.begin() && looked < kMostRanges; ++looked) {
        --range;
        if (range->threadId == thread && range->endNs > timeNs) return range->nameId;
    }
    return 0;
}

int32_t IdleCauses::loadingBefore(int64_t timeNs) const {
    const auto lastOf = [timeNs](const std::vector<HostRange>& ranges) {
        auto range = std::ranges::upper_bound(ranges, timeNs, {}, &HostRange::startNs);
        for (int looked = 0; range != ranges.begin() && looked < kMostRanges; ++looked)
            if ((--range)->loadsData) return *range;
        return HostRange{.endNs = INT64_MIN};
    };
    const HostRange marked = lastOf(m_events.ranges), operation = lastOf(m_events.operations);
    return marked.endNs >= operation.endNs ? marked.nameId : operation.nameId;
}

bool IdleCauses::withoutKernels(int64_t fromNs, int64_t untilNs) const {
    const auto begins = [&](const auto& tasks) {
        const auto next = std::ranges::lower_bound(tasks, fromNs, {}, [](const auto& task) { return task.startNs; });
        return next != tasks.end() && next->startNs < untilNs;
    };
    return !begins(m_events.compute) && !begins(m_events.communication);
}

bool IdleCauses::silentForInput(int64_t fromNs, const HostCall& submission) const {
    // A trace that tells what its hosts did, tells of loaders, too. A mark of the program that begins in the silence
    // names what it is.
    if (m_events.operationsRecorded || m_inCuda.within(fromNs, submission.startNs) * 10 >= submission.startNs - fromNs)
        return false;
    for (const HostRange& range : m_events.ranges) {
        if (range.startNs >= submission.startNs) break;
        const int64_t inside = std::min(range.endNs, submission.startNs) - range.startNs;
        if (range.startNs >= fromNs && inside * 2 > submission.startNs - fromNs &&
            m_loading.within(range.startNs, range.startNs + inside) == 0 && range.endNs <= submission.startNs)
            return false;
    }
    return true;
}

IdleVerdict IdleCauses::lateHost(const Interval& gap, const HostCall& submission, int64_t stepStartNs) const {
    IdleVerdict verdict;
    verdict.submissionId = submission.id;
    verdict.cause = IdleCause::lateLaunch;
    verdict.rangeNameId = rangeAt(submission.threadId, submission.startNs);
    const int64_t lateNs = submission.startNs - gap.startNs;
    const HostCall* drained = drain(submission, gap.startNs);
    if (drained != nullptr) verdict.blockedUntilNs = drained->endNs;
    if (lateNs <= 0) return verdict;  // submitted just before: the launch took its time
    if (lateNs >= kShortestDoingNs)
        verdict.doing = m_activity.mostly(submission.threadId, gap.startNs, submission.startNs);
    const auto mostOf = [&](const CoveredLength& covered) {
        return covered.within(gap.startNs, submission.startNs) * 2 > lateNs;
    };
    if (mostOf(m_loading)) {
        verdict.cause = IdleCause::input;
        verdict.rangeNameId = loadingBefore(submission.startNs);
        return verdict;
    }
    const bool allocates = mostOf(m_allocating) || (drained != nullptr && drained->allocates());
    // Silence at the start of a step is taken for the wait for its batch, whatever ended the step before.
    const int64_t fromNs = std::max(gap.startNs, stepStartNs);
    const bool atStart = m_events.stepsBeginOnHost && withoutKernels(stepStartNs, gap.startNs);
    if (!allocates && atStart && silentForInput(fromNs, submission)) {
        verdict.cause = IdleCause::input;
        return verdict;
    }
    if (drained == nullptr && !allocates) return verdict;
    verdict.cause = allocates ? IdleCause::allocator : IdleCause::blockingCall;
    const HostCall* blamed = drained;
    if (allocates && (drained == nullptr || !drained->allocates())) {
        const auto inside = std::ranges::upper_bound(m_waiting, gap.startNs, {}, &HostCall::endNs);
        for (auto call = inside; call != m_waiting.end() && (*call)->startNs < submission.startNs; ++call)
            if ((*call)->allocates()) blamed = *call;
    }
    if (blamed == nullptr) return verdict;
    verdict.callId = blamed->id;
    verdict.pageableCopy = blamed->pageableCopy;
    verdict.copyToDevice = blamed->copyToDevice;
    verdict.callNameId = blamed->nameId;
    verdict.rangeNameId = rangeAt(blamed->threadId, blamed->endNs - 1);
    return verdict;
}

IdleVerdict IdleCauses::of(const Interval& gap, int64_t stepStartNs) const {
    if (!hostIsKnown()) return {};  // no host rows: nothing to tell it from
    const Start* end = endOf(gap);
    if (end == nullptr || end->submission == nullptr) return {};
    const HostCall& submission = *end->submission;
    // The operation could have begun here: from then on the device held it up, before that the host did.
    const int64_t readyNs = submission.endNs + m_latencyNs;
    const int64_t hostNs = std::min(readyNs, gap.endNs) - gap.startNs;
    if (hostNs > 0 && (hostNs * 2 >= gap.endNs - gap.startNs || gap.endNs <= readyNs + kLaunchSlackNs))
        return lateHost(gap, submission, stepStartNs);
    IdleVerdict verdict;
    verdict.cause = gap.endNs - gap.startNs < RankSummary::kShortestGapNs ? IdleCause::other : IdleCause::dependency;
    return verdict;
}

std::vector<HostStall> hostStalls(const DeviceActivity& activity, const IdleCauses& causes, const RankFacts& facts) {
    std::vector<HostStall> stalls;
    if (!causes.hostIsKnown()) return stalls;
    const IntervalSet working = unite(activity.compute, activity.memory);
    const CoveredLength waiting(activity.wait);
    const CoveredLength communicating(unite(activity.wait, activity.transfer));
    for (const StepWindow& step : facts.steps) {
        for (const Interval& gap :
             subtract({{step.startNs, step.endNs()}}, clip(working, step.startNs, step.endNs()))) {
            const IdleVerdict verdict = causes.of(gap, step.startNs);
            if (!isHosts(verdict.cause)) continue;
            // A call that waits for communication has reason to: the host is late only from its return on. An allocator
            // call waits for every stream: without it compute would have gone on beside the communication.
            const bool hadReason = verdict.cause != IdleCause::allocator;
            const int64_t freeNs = hadReason ? std::clamp(verdict.blockedUntilNs, gap.startNs, gap.endNs) : gap.startNs;
            const int64_t waitedNs = communicating.within(gap.startNs, freeNs) + waiting.within(freeNs, gap.endNs);
            const int64_t stallNs = gap.endNs - gap.startNs - waitedNs;
            if (stallNs <= 0) continue;
            stalls.push_back({verdict, step.warmUp ? -1 : step.step, gap.startNs, gap.endNs, stallNs, 0});
        }
    }
    return stalls;
}

}  // namespace rankscope::facts
