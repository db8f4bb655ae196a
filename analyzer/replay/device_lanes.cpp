// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/device_lanes.h"

#include <algorithm>
#include <array>

namespace rankscope::replay {
namespace {

// Two stamps of one device that far apart may be of one moment: CUPTI rounds and converts them.
constexpr int64_t kDeviceClockNs = 2'000;
// Work that begins that soon behind other work may have waited for it: a launch or an event takes as long.
constexpr int64_t kRightAwayNs = 10'000;
constexpr int64_t kLongestLatencyNs = 100'000;  // of a launch, a gap or an event; beyond, something else was waited for
// CUDA's queues hold about a thousand entries, events included: with fewer pieces of work ahead of the device they are
// not full.
constexpr std::ptrdiff_t kFullQueue = 256;
constexpr int64_t kUsualLaunchNs = 6'000;  // of a launch when none of the trace shows it: then none mattered

/// Returns the mean of the samples that show nothing but the latency: those near the shortest tenth. The others waited
/// for something that is not recorded.
int64_t typicalNs(std::vector<int64_t>& samples) {
    if (samples.empty()) return 0;
    const auto low = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 10);
    std::nth_element(samples.begin(), low, samples.end());
    const int64_t limitNs = 3 * *low + 1'000;
    int64_t sum = 0;
    int64_t count = 0;
    for (int64_t ns : samples) {
        if (ns > limitNs) continue;
        sum += ns;
        ++count;
    }
    return sum / count;
}

}  // namespace

DeviceLanes::DeviceLanes(const facts::RankEvents& events, RankTasks& result) : m_events(events), m_result(result) {
    m_pieces.reserve(events.compute.size() + events.communication.size() + events.memory.size());
    const auto add = [&](const auto& rows, auto&& workOf) {
        for (size_t i = 0; i < rows.size(); ++i)
            m_pieces.push_back(
                {rows[i].startNs, rows[i].endNs, rows[i].streamId, workOf(rows[i]), static_cast<uint32_t>(i)});
    };
    add(events.compute, [](const facts::ComputeTask&) { return Work::kernel; });
    add(events.communication, [](const facts::CommTask&) { return Work::communication; });
    add(events.memory, [](const facts::MemoryTask& task) { return task.copyId != 0 ? Work::copy : Work::set; });
    const auto correlationOf = [&](const Piece& piece) {
        return piece.work == Work::kernel          ? events.compute[piece.row].correlation
               : piece.work == Work::communication ? events.communication[piece.row].correlation
                                                   : events.memory[piece.row].correlation;
    };
    CorrelationIndex calls;
    for (const facts::HostCall& call : events.hostCalls)
        if (call.submits()) calls.add(call.correlation, 0);
    calls.finish();
    for (uint32_t i = 0; i < m_pieces.size(); ++i) {
        const int64_t correlation = correlationOf(m_pieces[i]);
        const auto [first, last] = calls.find(correlation);
        m_totalNs += m_pieces[i].endNs - m_pieces[i].startNs;
        m_known.insert(m_pieces[i].stream);
        if (first != last) {
            m_index.add(correlation, i);
        } else {
            streamOf(m_pieces[i].stream).unlaunched.push_back(i);
            m_unlaunchedNs += m_pieces[i].endNs - m_pieces[i].startNs;
        }
    }
    m_index.finish();
    for (const facts::SynchronizationRecord& wait : events.synchronizations)
        if (wait.kind == facts::SynchronizationRecord::Kind::streamWaitEvent && wait.streamId != 0)
            m_known.insert(wait.streamId);
    for (auto& [id, stream] : m_streams)
        std::ranges::sort(stream.unlaunched, {}, [&](uint32_t piece) { return m_pieces[piece].startNs; });
    m_placed.reserve(m_pieces.size());
}

DeviceLanes::Stream& DeviceLanes::streamOf(int32_t id) {
    const auto [stream, isNew] = m_streams.try_emplace(id);
    if (isNew) stream->second.lane = m_result.draft.addLane({m_events.rank, false, id});
    return stream->second;
}

uint32_t DeviceLanes::kernelKey(const facts::KernelKey& key) {
    const auto [known, isNew] = m_keys.try_emplace(key, static_cast<uint32_t>(m_result.kernelKeys.size()));
    if (isNew) m_result.kernelKeys.push_back(key);
    return known->second;
}

void DeviceLanes::submit(int64_t correlation, TaskId launch, int64_t launchNs, store::ApiKind how, int step,
                         const std::vector<TaskId>& awaited) {
    const auto [first, last] = m_index.find(correlation);
    if (first == last) return;
    const bool graph = how == store::ApiKind::graphLaunch;
    const size_t firstPlaced = m_placed.size();
    if (last - first == 1) {
        Stream& stream = streamOf(m_pieces[first->second].stream);
        for (TaskId task : awaited) addPending(stream, task);
        place(first->second, launch, launchNs, step, graph);
        return;
    }
    std::vector<uint32_t> pieces;
    for (auto at = first; at != last; ++at) pieces.push_back(at->second);
    std::ranges::stable_sort(pieces, {}, [&](uint32_t piece) { return m_pieces[piece].startNs; });
    for (uint32_t piece : pieces) place(piece, launch, launchNs, step, graph);
    orderGraph(firstPlaced);
}

int32_t DeviceLanes::streamOfCall(int64_t correlation) {
    const auto [first, last] = m_index.find(correlation);
    return first == last ? -1 : m_pieces[first->second].stream;
}

TaskId DeviceLanes::lastOf(int64_t correlation) {
    const auto [first, last] = m_index.find(correlation);
    if (first == last) return kNoTask;
    const Stream& stream = streamOf(m_pieces[(last - 1)->second].stream);
    return stream.placed.empty() ? kNoTask : m_placed[stream.placed.back()].last;
}

void DeviceLanes::place(uint32_t index, TaskId launch, int64_t launchNs, int step, bool graph) {
    const Piece& piece = m_pieces[index];
    Stream& stream = streamOf(piece.stream);
    if (launch != kNoTask && stream.nextUnlaunched < stream.unlaunched.size())
        placeUnlaunched(stream, piece.startNs, step);
    Placed placed{.launch = launch,
                  .piece = index,
                  .launchNs = launchNs,
                  .firstWait = static_cast<uint32_t>(m_waits.size()),
                  .before = stream.placed.empty() ? kNothing : stream.placed.back(),
                  .graph = graph};
    for (TaskId task : stream.pending) {
        if (endNs(task) > piece.startNs + kDeviceClockNs) {
            ++m_result.counts.contradicted;
            continue;
        }
        m_waits.push_back(task);
    }
    placed.waits = static_cast<uint32_t>(m_waits.size()) - placed.firstWait;
    stream.pending.clear();
    GraphDraft& draft = m_result.draft;
    if (placed.before != kNothing) {
        // Dependent launches begin before what is in front of them ends: the part side by side counts once.
        const Placed& before = m_placed[placed.before];
        if (const int64_t overlapNs = pieceOf(before).endNs - piece.startNs;
            overlapNs > 0 && before.last == before.task)
            draft.durationNs(before.task) = std::max<int64_t>(0, draft.durationNs(before.task) - overlapNs);
    }
    TaskInfo info{.lane = stream.lane & kNoLane, .step = step};
    if (piece.work == Work::communication) {
        const facts::CommTask& task = m_events.communication[piece.row];
        info.row = static_cast<uint32_t>(task.kernelId);
        info.kind = TaskKind::arrival;
        placed.task = draft.addTask(info, 0);
        info.kind = TaskKind::transfer;
        placed.last = draft.addTask(info, piece.endNs - piece.startNs);
        m_result.comms.push_back(
            {task.kernelId, task.communicatorId, task.startNs, task.endNs, placed.task, placed.last});
    } else {
        info.kind = piece.work == Work::kernel ? TaskKind::kernel
                    : piece.work == Work::copy ? TaskKind::copy
                                               : TaskKind::set;
        if (piece.work == Work::kernel) {
            info.row = static_cast<uint32_t>(m_events.firstKernelId + m_events.compute[piece.row].row);
            info.detail = kernelKey(m_events.compute[piece.row].key);
        } else {
            info.row = static_cast<uint32_t>(m_events.memory[piece.row].copyId);
        }
        placed.task = placed.last = draft.addTask(info, piece.endNs - piece.startNs);
    }
    remember(placed, stream);
}

void DeviceLanes::remember(const Placed& placed, Stream& stream) {
    m_placedOf.resize(m_result.draft.size(), kNothing);
    m_placedOf[placed.task] = m_placedOf[placed.last] = static_cast<uint32_t>(m_placed.size());
    stream.placed.push_back(static_cast<uint32_t>(m_placed.size()));
    m_placed.push_back(placed);
    m_busyUntilNs = std::max(m_busyUntilNs, pieceOf(placed).endNs);
}

void DeviceLanes::pass(int64_t correlation) {
    const auto [first, last] = m_index.find(correlation);
    for (auto at = first; at != last; ++at) {
        uint32_t& passed = streamOf(m_pieces[at->second].stream).passed;
        if (passed == kNothing || m_pieces[passed].endNs < m_pieces[at->second].endNs) passed = at->second;
    }
}

void DeviceLanes::begin() {
    m_windowed = true;
    for (auto& [id, stream] : m_streams) {
        if (stream.passed == kNothing) continue;
        const int64_t endNs = m_pieces[stream.passed].endNs;
        while (stream.nextUnlaunched < stream.unlaunched.size() &&
               m_pieces[stream.unlaunched[stream.nextUnlaunched]].startNs < endNs)
            ++stream.nextUnlaunched;
        const TaskId task = m_result.draft.addTask({.lane = stream.lane & kNoLane, .kind = TaskKind::boundary}, endNs);
        remember({.task = task, .last = task, .piece = stream.passed}, stream);
    }
}

void DeviceLanes::placeUnlaunched(Stream& stream, int64_t beforeNs, int step) {
    while (stream.nextUnlaunched < stream.unlaunched.size() &&
           m_pieces[stream.unlaunched[stream.nextUnlaunched]].startNs < beforeNs)
        place(stream.unlaunched[stream.nextUnlaunched++], kNoTask, INT64_MIN, step, false);
}

void DeviceLanes::orderGraph(size_t firstPlaced) {
    const int32_t main = pieceOf(m_placed[firstPlaced]).stream;
    std::map<int32_t, std::vector<uint32_t>> nodes;
    for (auto i = static_cast<uint32_t>(firstPlaced); i < m_placed.size(); ++i) {
        const Placed& placed = m_placed[i];
        const Piece& piece = pieceOf(placed);
        const int64_t boundNs = std::max({beforeEndNs(placed), waitEndNs(placed), placed.launchNs});
        const Placed* awaited = nullptr;
        for (const auto& [stream, others] : nodes) {
            if (stream == piece.stream) continue;
            const Placed* other = lastEndedBy(others, piece.startNs + kDeviceClockNs);
            if (other != nullptr && (awaited == nullptr || pieceOf(*other).endNs > pieceOf(*awaited).endNs))
                awaited = other;
        }
        if (awaited != nullptr && pieceOf(*awaited).endNs > boundNs) m_inferred.emplace_back(i, awaited->last);
        nodes[piece.stream].push_back(i);
    }
    // The graph is done when all its nodes are.
    for (const auto& [stream, others] : nodes)
        if (stream != main) addPending(streamOf(main), m_placed[others.back()].last);
}

void DeviceLanes::addPending(Stream& stream, TaskId task) {
    const uint32_t lane = m_result.draft.info(task).lane;
    if (lane == stream.lane) return;
    const auto [waited, isNew] = stream.waited.try_emplace(lane, task);
    if (!isNew && waited->second >= task) return;  // it, or something behind it, is waited for already
    if (!isNew) std::erase(stream.pending, waited->second);
    waited->second = task;
    stream.pending.push_back(task);
}

std::vector<TaskId> DeviceLanes::given(int32_t id) const {
    const auto stream = m_streams.find(id);
    if (stream == m_streams.end()) return {};
    std::vector<TaskId> tasks = stream->second.pending;
    if (!stream->second.placed.empty()) tasks.push_back(m_placed[stream->second.placed.back()].last);
    return tasks;
}

std::vector<TaskId> DeviceLanes::givenToAll() const {
    std::vector<TaskId> tasks;
    for (const auto& [id, stream] : m_streams)
        if (!stream.placed.empty()) tasks.push_back(m_placed[stream.placed.back()].last);
    return tasks;
}

void DeviceLanes::wait(int32_t id, const std::vector<TaskId>& tasks) {
    Stream& stream = streamOf(id);
    for (TaskId task : tasks) addPending(stream, task);
}

int64_t DeviceLanes::endNs(TaskId task) const {
    return pieceOf(placedOf(task)).endNs;
}

const DeviceLanes::Placed* DeviceLanes::lastEndedBy(const std::vector<uint32_t>& placed, int64_t ns) const {
    const auto after =
        std::ranges::upper_bound(placed, ns, {}, [&](uint32_t at) { return pieceOf(m_placed[at]).endNs; });
    return after == placed.begin() ? nullptr : &m_placed[*(after - 1)];
}

TaskId DeviceLanes::lastEndedBy(int64_t ns) const {
    const Placed* last = nullptr;
    for (const auto& [id, stream] : m_streams) {
        const Placed* candidate = lastEndedBy(stream.placed, ns);
        if (candidate != nullptr && (last == nullptr || pieceOf(*candidate).endNs > pieceOf(*last).endNs))
            last = candidate;
    }
    return last == nullptr ? kNoTask : last->last;
}

TaskId DeviceLanes::roomMaker(int32_t id, int64_t startedNs, int64_t returnedNs) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) return kNoTask;
    const Stream& stream = found->second;
    const auto after = std::ranges::upper_bound(stream.placed, returnedNs, {},
                                                [&](uint32_t at) { return pieceOf(m_placed[at]).endNs; });
    if (stream.placed.end() - after < kFullQueue) return kNoTask;
    const TaskId own = after == stream.placed.begin() ? kNoTask : m_placed[*(after - 1)].last;
    return own != kNoTask && endNs(own) > startedNs ? own : lastEndedBy(returnedNs);
}

int64_t DeviceLanes::waitEndNs(const Placed& placed) const {
    int64_t ns = INT64_MIN;
    for (uint32_t i = 0; i < placed.waits; ++i) ns = std::max(ns, endNs(m_waits[placed.firstWait + i]));
    return ns;
}

void DeviceLanes::inferWaits() {
    for (uint32_t i = 0; i < m_placed.size(); ++i) {
        const Placed& placed = m_placed[i];
        const Piece& piece = pieceOf(placed);
        const int64_t boundNs = std::max(beforeEndNs(placed), placed.launchNs + kUsualLaunchNs);
        if (boundNs <= INT64_MIN + kUsualLaunchNs)
            continue;  // neither its launch nor anything before it is known: it may have begun whenever it did
        if (piece.startNs - boundNs < kRightAwayNs) continue;
        for (const auto& [id, stream] : m_streams) {
            if (id == piece.stream) continue;
            const Placed* other = lastEndedBy(stream.placed, piece.startNs + kDeviceClockNs);
            if (other == nullptr || pieceOf(*other).endNs < std::max(boundNs, piece.startNs - kRightAwayNs) ||
                other->launchNs > placed.launchNs)
                continue;
            m_inferred.emplace_back(i, other->last);
        }
    }
}

void DeviceLanes::setLatencies() {
    const auto add = [](std::vector<int64_t>& samples, int64_t ns) {
        if (ns <= kLongestLatencyNs) samples.push_back(std::max<int64_t>(0, ns));
    };
    std::array<std::vector<int64_t>, 4> launches;
    for (const Placed& placed : m_placed) {
        const Piece& piece = pieceOf(placed);
        if (placed.launch == kNoTask || placed.graph ||
            std::max(beforeEndNs(placed), waitEndNs(placed)) > placed.launchNs)
            continue;
        add(launches[static_cast<size_t>(piece.work)], piece.startNs - placed.launchNs);
    }
    std::array<int64_t, 4> launchNs{};
    for (size_t i = 0; i < launches.size(); ++i)
        launchNs[i] = !launches[i].empty() ? typicalNs(launches[i]) : i > 0 ? launchNs[0] : kUsualLaunchNs;

    std::map<int32_t, std::vector<int64_t>> gaps;
    std::vector<int64_t> waits;
    for (const Placed& placed : m_placed) {
        const Piece& piece = pieceOf(placed);
        const int64_t beforeNs = beforeEndNs(placed);
        const int64_t waitNs = waitEndNs(placed);
        const int64_t readyNs =
            placed.launch == kNoTask ? INT64_MIN : placed.launchNs + launchNs[static_cast<size_t>(piece.work)];
        if (beforeNs > readyNs && beforeNs >= waitNs) add(gaps[piece.stream], piece.startNs - beforeNs);
        if (waitNs > readyNs && waitNs > beforeNs) add(waits, piece.startNs - waitNs);
    }
    std::map<int32_t, int64_t> gapNs;
    for (auto& [stream, samples] : gaps) gapNs[stream] = typicalNs(samples);
    const int64_t waitNs = typicalNs(waits);
    GraphDraft& draft = m_result.draft;
    for (const Placed& placed : m_placed) {
        const Piece& piece = pieceOf(placed);
        if (placed.before != kNothing) draft.leadNs(placed.task) = static_cast<uint32_t>(gapNs[piece.stream]);
        if (placed.launch != kNoTask)
            draft.addEdge(placed.task, placed.launch, WaitKind::launch, launchNs[static_cast<size_t>(piece.work)],
                          true);
        for (uint32_t i = 0; i < placed.waits; ++i)
            draft.addEdge(placed.task, m_waits[placed.firstWait + i], WaitKind::event, waitNs);
    }
    for (const auto& [placed, task] : m_inferred) draft.addEdge(m_placed[placed].task, task, WaitKind::event, waitNs);
}

void DeviceLanes::setSteps(const std::vector<facts::StepWindow>& steps) {
    for (const Placed& placed : m_placed) {
        const facts::StepWindow* step = facts::stepAt(steps, pieceOf(placed).startNs);
        for (TaskId task : {placed.task, placed.last})
            m_result.draft.info(task).step = step == nullptr ? -1 : step->step;
    }
}

void DeviceLanes::finish(bool eventsKnown) {
    for (auto& [id, stream] : m_streams)
        if (!m_windowed) placeUnlaunched(stream, INT64_MAX, -1);
    if (!eventsKnown) inferWaits();
    m_result.counts.inferredWaits += static_cast<int64_t>(m_inferred.size());
    setLatencies();
    std::ranges::sort(m_result.comms, {}, &CommKernel::kernelId);
}

}  // namespace rankscope::replay
