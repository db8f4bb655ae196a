// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/rank_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "analyzer/facts/statistics.h"

namespace rankscope::replay {
namespace {

constexpr int64_t kHostClockNs = 2'000;  // two stamps of one machine that far apart may be of one moment
constexpr int64_t kLongNs = 20'000;      // a call that usually returns at once took long: over this ...
constexpr double kLongFactor = 5;        // ... and this many times its usual duration
// From this share of the device time without launch rows on the host's part is unknown.
constexpr double kMostUnlaunched = 0.02;

/// Returns the name of a range without its number, as steps are named in meta.step_source.
std::string_view patternOf(std::string_view name) {
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back()))) name.remove_suffix(1);
    while (!name.empty() && std::string_view(" #:_-=/[(").find(name.back()) != std::string_view::npos)
        name.remove_suffix(1);
    return name;
}

/// Returns the host times at which the steps of a rank begin, and the last one ends; empty when steps are no ranges.
std::vector<int64_t> stepBounds(const facts::RankEvents& events, const facts::TraceFacts& facts, size_t steps) {
    if (!facts.stepSource.starts_with("nvtx:")) return {};
    const std::string_view pattern = std::string_view(facts.stepSource).substr(5);
    std::unordered_map<int32_t, bool> named;
    std::vector<int64_t> bounds;
    int64_t endNs = INT64_MIN;
    for (const facts::HostRange& range : events.ranges) {
        const auto [known, isNew] = named.try_emplace(range.nameId, false);
        if (isNew) known->second = patternOf(facts.string(range.nameId)) == pattern;
        if (!known->second || range.startNs < endNs) continue;
        bounds.push_back(range.startNs);
        endNs = range.endNs;
    }
    if (bounds.size() != steps || bounds.empty()) return {};
    bounds.push_back(endNs);
    return bounds;
}

}  // namespace

RankRecorder::RankRecorder(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window)
    : m_events(events),
      m_facts(facts),
      m_rank(facts.findRank(events.rank)),
      m_device(events, m_result),
      m_windowed(!window.whole()) {
    m_result.rank = events.rank;
    for (uint32_t i = 0; i < events.eventRecords.size(); ++i) m_records.add(events.eventRecords[i].correlation, i);
    for (uint32_t i = 0; i < events.synchronizations.size(); ++i)
        m_waits.add(events.synchronizations[i].correlation, i);
    m_records.finish();
    m_waits.finish();
    if (m_rank == nullptr) return;
    m_bounds = stepBounds(events, facts, m_rank->steps.size());
    for (size_t i = 0; m_windowed && i < m_rank->steps.size(); ++i) {
        if (m_rank->steps[i].step < window.first) m_nextBound = i + 1;
        if (m_rank->steps[i].step <= window.last) m_lastBound = i + 1;
    }
}

void RankRecorder::findProblem() {
    if (m_rank == nullptr || m_rank->steps.empty()) m_result.problem = "no steps are known";
    if (m_events.hostCalls.empty())
        m_result.problem = "calls of the host are not recorded: what launched the device's work is unknown";
    else if (static_cast<double>(m_device.unlaunchedNs()) > kMostUnlaunched * static_cast<double>(m_device.totalNs()))
        m_result.problem =
            fmt::format("{:.0f} % of the device's work has no launch row",
                        100.0 * static_cast<double>(m_device.unlaunchedNs()) / static_cast<double>(m_device.totalNs()));
    else if (m_windowed && (m_bounds.empty() || m_nextBound + 1 >= m_bounds.size()))
        m_result.problem =
            "the trace is too long to be replayed as a whole, and its steps are no ranges of the host, from which a "
            "part could begin";
}

RankTasks RankRecorder::run() {
    findProblem();
    if (!m_result.problem.empty()) return std::move(m_result);
    std::vector<bool> active(m_events.hostCalls.size());
    std::unordered_map<int32_t, std::vector<double>> durations;
    for (size_t i = 0; i < active.size(); ++i) {
        const facts::HostCall& call = m_events.hostCalls[i];
        active[i] = call.waits || call.submits() || call.allocates() || call.kind == store::ApiKind::event;
        durations[call.nameId].push_back(static_cast<double>(call.endNs - call.startNs));
    }
    for (auto& [name, samples] : durations) m_usualNs[name] = static_cast<int64_t>(facts::median(std::move(samples)));
    m_host.assign(m_events.hostCalls, active, m_events.rank, m_result.draft);
    playCalls();
    m_device.finish(!m_events.eventRecords.empty() && !m_events.synchronizations.empty());
    if (m_bounds.empty()) markStepsByDevice();
    return std::move(m_result);
}

void RankRecorder::playCalls() {
    bool begun = !m_windowed;
    for (const facts::HostCall& call : m_events.hostCalls) {
        if (m_host.laneOf(call.threadId) == kNoLane) continue;
        if (!begun && call.startNs < m_bounds[m_nextBound]) {
            m_device.pass(call.correlation);
            continue;
        }
        if (!begun) m_device.begin();
        begun = true;
        markStepsUntil(call.startNs);
        if (m_nextBound > m_lastBound) return;  // behind the window
        takeCall(call);
    }
    markStepsUntil(INT64_MAX);
}

void RankRecorder::takeCall(const facts::HostCall& call) {
    const auto [firstRecord, lastRecord] = m_records.find(call.correlation);
    if (firstRecord != lastRecord) return recordEvent(m_events.eventRecords[firstRecord->second], call);
    const auto [firstWait, lastWait] = m_waits.find(call.correlation);
    if (firstWait != lastWait &&
        m_events.synchronizations[firstWait->second].kind == facts::SynchronizationRecord::Kind::streamWaitEvent)
        return streamWaits(m_events.synchronizations[firstWait->second], call);
    const uint32_t lane = m_host.laneOf(call.threadId);
    if (call.submits() && m_device.has(call.correlation)) return submit(call, lane);
    if (call.kind == store::ApiKind::synchronize) return waitForDevice(call, lane, awaitedBy(call), false);
    if (seemsToWait(call)) waitForDevice(call, lane, m_device.givenToAll(), true);
}

bool RankRecorder::seemsToWait(const facts::HostCall& call) const {
    const int64_t busyUntilNs = m_device.busyUntilNs();
    if (busyUntilNs <= call.startNs || busyUntilNs > call.endNs + kHostClockNs) return false;
    if (call.allocates()) return true;
    const auto usual = m_usualNs.find(call.nameId);
    const int64_t durationNs = call.endNs - call.startNs;
    return durationNs > kLongNs && usual != m_usualNs.end() &&
           static_cast<double>(durationNs) > kLongFactor * static_cast<double>(usual->second);
}

// The launch queue was full: the call returned when work that had been put on it long before was done.
TaskId RankRecorder::roomMaker(const facts::HostCall& call, int32_t stream) {
    const auto usual = m_usualNs.find(call.nameId);
    if (usual == m_usualNs.end() || call.endNs - call.startNs <= usual->second + kHostClockNs) return kNoTask;
    const TaskId done = m_device.roomMaker(stream, call.startNs, call.endNs);
    return done != kNoTask && m_device.endNs(done) > call.startNs ? done : kNoTask;
}

// Records of events, and streams' waits for them, take places in the queue as kernels do.
void RankRecorder::waitForRoom(const facts::HostCall& call, int32_t stream) {
    if (const TaskId room = roomMaker(call, stream); room != kNoTask)
        waitForDevice(call, m_host.laneOf(call.threadId), {room}, true);
}

TaskInfo RankRecorder::infoOf(const facts::HostCall& call, TaskKind kind) const {
    return {.kind = kind,
            .row = static_cast<uint32_t>(call.id),
            .detail = static_cast<uint32_t>(call.nameId),
            .step = m_step};
}

void RankRecorder::submit(const facts::HostCall& call, uint32_t lane) {
    int64_t durationNs = call.endNs - call.startNs;
    const TaskId room = call.waits ? kNoTask : roomMaker(call, m_device.streamOfCall(call.correlation));
    if (room != kNoTask) {
        durationNs = call.endNs - m_device.endNs(room);
        ++m_result.counts.inferredBlocking;
    }
    const TaskId launch = m_host.add(m_result.draft, infoOf(call, TaskKind::host), lane, call.startNs,
                                     call.waits ? call.startNs : call.endNs, call.waits ? 0 : durationNs);
    if (room != kNoTask) m_result.draft.addEdge(launch, room, WaitKind::blocking);
    std::vector<TaskId> awaited;
    if (const auto waits = m_streamlessWaits.find(call.threadId); waits != m_streamlessWaits.end()) {
        awaited = std::move(waits->second);
        m_streamlessWaits.erase(waits);
    }
    m_lastStream[call.threadId] = m_device.streamOfCall(call.correlation);
    m_device.submit(call.correlation, launch, call.startNs, call.kind, m_step, awaited);
    if (!call.waits) return;
    const auto copy = m_device.lastOf(call.correlation);
    waitForDevice(call, lane, copy == kNoTask ? std::vector<TaskId>{} : std::vector<TaskId>{copy}, false);
}

void RankRecorder::waitForDevice(const facts::HostCall& call, uint32_t lane, std::vector<TaskId> tasks, bool inferred) {
    int64_t doneNs = call.startNs;
    std::erase_if(tasks, [&](TaskId task) {
        const int64_t endNs = m_device.endNs(task);
        if (endNs > call.endNs + kHostClockNs) {
            ++m_result.counts.contradicted;
            return true;
        }
        doneNs = std::max(doneNs, endNs);
        return false;
    });
    const TaskId wait = m_host.add(m_result.draft, infoOf(call, TaskKind::blockingCall), lane, call.startNs, call.endNs,
                                   std::max<int64_t>(0, call.endNs - doneNs));
    for (TaskId task : tasks) m_result.draft.addEdge(wait, task, WaitKind::blocking);
    if (inferred) ++m_result.counts.inferredBlocking;
}

std::vector<TaskId> RankRecorder::awaitedBy(const facts::HostCall& call) {
    using Kind = facts::SynchronizationRecord::Kind;
    const auto [first, last] = m_waits.find(call.correlation);
    if (first != last) {
        const facts::SynchronizationRecord& wait = m_events.synchronizations[first->second];
        if (wait.kind == Kind::context) return m_device.givenToAll();
        if (wait.kind == Kind::stream && wait.streamId != 0) return m_device.given(wait.streamId);
        const auto event = m_eventTasks.find(wait.eventId);
        if (wait.kind == Kind::event && event != m_eventTasks.end()) return event->second;
    }
    const std::string_view name = m_facts.string(call.nameId);
    if (name.find("Device") != name.npos || name.find("Ctx") != name.npos) return m_device.givenToAll();
    // Which stream or event is not recorded: it waited for what was done last when it returned.
    const TaskId done = m_device.lastEndedBy(call.endNs);
    if (done == kNoTask || m_device.endNs(done) <= call.startNs) return {};
    ++m_result.counts.inferredBlocking;
    return {done};
}

void RankRecorder::recordEvent(const facts::EventRecord& record, const facts::HostCall& call) {
    int32_t stream = record.streamId;
    if (!m_device.knows(stream)) {
        // A stream that nothing had run on was not known to older recorders. Programs record an event right behind the
        // work that it stands for.
        const auto last = m_lastStream.find(call.threadId);
        if (last == m_lastStream.end()) return;
        stream = last->second;
        ++m_result.counts.inferredWaits;
    }
    m_eventTasks[record.eventId] = m_device.given(stream);
    waitForRoom(call, stream);
}

void RankRecorder::streamWaits(const facts::SynchronizationRecord& wait, const facts::HostCall& call) {
    const auto event = m_eventTasks.find(wait.eventId);
    if (event == m_eventTasks.end()) return;
    if (wait.streamId != 0) {
        m_device.wait(wait.streamId, event->second);
        return waitForRoom(call, wait.streamId);
    }
    // A stream that nothing had run on was not known to older recorders. Programs order a stream right before they use
    // it.
    std::vector<TaskId>& waits = m_streamlessWaits[call.threadId];
    waits.insert(waits.end(), event->second.begin(), event->second.end());
    ++m_result.counts.inferredWaits;
}

void RankRecorder::markStepsUntil(int64_t ns) {
    for (; m_nextBound < m_bounds.size() && m_nextBound <= m_lastBound && m_bounds[m_nextBound] <= ns; ++m_nextBound)
        markStep(m_bounds[m_nextBound], m_nextBound);
}

void RankRecorder::markStep(int64_t ns, size_t index) {
    const bool closes = index == std::min(m_lastBound, m_rank->steps.size());
    const int step = m_rank->steps[closes ? index - 1 : index].step;
    if (!closes) m_step = step;
    TaskId host = kNoTask;
    if (const uint32_t lane = m_host.anyLane(); lane != kNoLane)
        host = m_host.add(m_result.draft, {.kind = TaskKind::host, .step = step}, lane, ns, ns, 0);
    const TaskId mark = addMark(step, closes, 0);
    if (host != kNoTask) m_result.draft.addEdge(mark, host, WaitKind::mark);
    // A step begins on the device when what was launched before is done.
    for (TaskId task : m_device.givenToAll()) m_result.draft.addEdge(mark, task, WaitKind::mark);
}

TaskId RankRecorder::addMark(int step, bool closes, int64_t atNs) {
    const TaskId mark = m_result.draft.addTask({.lane = kNoLane, .kind = TaskKind::stepMark, .step = step}, 0, atNs);
    m_result.draft.addMark({m_events.rank, step, closes, mark});
    return mark;
}

void RankRecorder::markStepsByDevice() {
    const std::vector<facts::StepWindow>& steps = m_rank->steps;
    m_device.setSteps(steps);
    for (size_t i = 0; i <= steps.size(); ++i) {
        const bool closes = i == steps.size();
        const int64_t ns = closes ? steps[i - 1].endNs() : steps[i].startNs;
        const TaskId done = m_device.lastEndedBy(ns);
        const int64_t atNs = done == kNoTask ? std::min<int64_t>(ns, UINT32_MAX) : 0;
        const TaskId mark = addMark(steps[closes ? i - 1 : i].step, closes, atNs);
        if (done != kNoTask) m_result.draft.addEdge(mark, done, WaitKind::mark, ns - m_device.endNs(done));
    }
}

}  // namespace rankscope::replay
