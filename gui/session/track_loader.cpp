// SPDX-License-Identifier: Apache-2.0
#include "gui/session/track_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collector/store/error.h"
#include "collector/store/page_rows.h"
#include "gui/session/counter_loader.h"
#include "gui/session/device_ranges.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {
namespace {

using store::PageRows;
using store::Statement;

constexpr int64_t kRowsBetweenChecks = 4096;
constexpr size_t kMaxStreamDepth = 4;  // kernels of a graph that run side by side on one stream
constexpr size_t kMaxHostDepth = 16;
constexpr size_t kMaxNvtxDepth = 32;
constexpr size_t kMaxOwners = 1024;  // streams or threads of a rank that are shown

// What read() selects of every table; the table's own columns follow.
enum SelectedColumn : int { kOwner, kStart, kDuration, kRank, kName };

// Rows of one table, dealt onto a stack of tracks for each stream or thread.
using Stacks = std::map<int64_t, TrackStack>;

// What one stream holds of all tables.
struct StreamContent {
    std::vector<Lane::Part> parts;
    std::vector<UndrawnEvents> undrawn;
};

// Rows of one table that are not as a writer leaves them.
struct UnsoundRows {
    int64_t impossible =
        0;  // of another rank, with a time that is no number or centuries away, or with a name that is not there
    int64_t negative = 0;   // durations
    int64_t unordered = 0;  // begin before the row above
};

class RankLoader {
  public:
    RankLoader(store::TraceReader& reader, const RunInfo& run, int32_t rank, LoadControl& control)
        : m_reader(reader), m_run(run), m_rank(rank), m_control(control), m_result(std::make_shared<RankTracks>()) {
        m_result->rank = rank;
    }

    RankTracksPtr load() {
        loadSteps();
        const bool whole = loadHost() && loadStreams();
        if (!whole) return nullptr;
        addDeviceRanges();
        addIdle();
        for (Lane& lane : m_streams) m_result->lanes.push_back(std::move(lane));
        for (Lane& lane : loadCounters(m_reader, m_run, m_rank)) m_result->lanes.push_back(std::move(lane));
        const auto device = m_result->deviceTracks();
        m_result->activity = ActivityBins(device, extentOf(device));
        const auto placeOf = [](const NegativeDuration& event) { return std::pair(event.table, event.row); };
        std::sort(m_result->negative.begin(), m_result->negative.end(),
                  [&](const NegativeDuration& a, const NegativeDuration& b) { return placeOf(a) < placeOf(b); });
        return std::move(m_result);
    }

  private:
    void loadSteps() {
        Track track;
        for (const StepInfo& step : m_run.steps)
            if (step.rank == m_rank)
                track.add({step.range.beginNs, step.range.span(), 0, static_cast<uint32_t>(std::max(0, step.step)),
                           EventKind::step});
        track.finish();
        if (!track.empty()) addLane(LaneKind::steps, "steps", EventTable::step, std::move(track));
    }

    bool loadHost() {
        Stacks nvtx, calls, nccl;
        const bool whole =
            read("thread_id, start_ns, coalesce(dur_ns, max(0, ?3 - start_ns)), rank, name_id", EventTable::nvtx, nvtx,
                 kMaxNvtxDepth,
                 [this](const Statement& row, int64_t) {
                     const TrackEvent event{row.integer(kStart), row.integer(kDuration), nameOf(row, kName), 0,
                                            EventKind::nvtx};
                     if (row.isInteger(kOwner) && event.durNs > 0 && !isFar(event.startNs) && !isFar(event.durNs))
                         m_ranges.push_back({row.integer(kOwner), event.startNs, event.startNs + event.durNs,
                                             event.name, static_cast<uint32_t>(m_rangeRows)});
                     ++m_rangeRows;
                     return event;
                 }) &&
            readIntegers({"thread_id", "start_ns", "dur_ns", "rank", "name_id", "kind"}, !m_ranges.empty(),
                         EventTable::apiCall, calls, kMaxHostDepth,
                         [this](const PageRows& row, int64_t) {
                             if (!m_ranges.empty() && row.isInteger(kName + 2))
                                 m_calls.push_back({row.integer(kOwner), row.integer(kStart), row.integer(kName + 2)});
                             return TrackEvent{row.integer(kStart), row.integer(kDuration), nameOf(row, kName), 0,
                                               kindOfCall(row.integer(kName + 1))};
                         }) &&
            read("thread_id, start_ns, dur_ns, rank, op", EventTable::ncclCall, nccl, kMaxHostDepth,
                 [](const Statement& row, int64_t) {
                     return TrackEvent{row.integer(kStart), row.integer(kDuration),
                                       ncclCallName(store::fromText<store::Op>(row.text(kName))), 0,
                                       EventKind::communication};
                 });
        addStacks(nvtx, LaneKind::nvtx, EventTable::nvtx, [&](int64_t thread) { return "NVTX " + threadLane(thread); });
        addStacks(nccl, LaneKind::hostCalls, EventTable::ncclCall,
                  [&](int64_t thread) { return "NCCL calls " + threadLane(thread); });
        addStacks(calls, LaneKind::hostCalls, EventTable::apiCall,
                  [&](int64_t thread) { return "CUDA calls " + threadLane(thread); });
        return whole;
    }

    bool loadStreams() {
        Stacks kernels, copies, sets;
        const bool correlated = !m_calls.empty();
        const std::span<const KernelWait> waits = m_control.waits.of(m_reader, m_rank);
        auto wait = waits.begin();  // both are in the order of rows
        const bool whole =
            readIntegers({"stream_id", "start_ns", "dur_ns", "rank", "name_id", "nccl"}, correlated, EventTable::kernel,
                         kernels, kMaxStreamDepth,
                         [&](const PageRows& row, int64_t id) {
                             keepWork(row, kName + 2);
                             TrackEvent event{row.integer(kStart), row.integer(kDuration), nameOf(row, kName), 0,
                                              EventKind::compute};
                             if (row.integer(kName + 1) == 0) return event;
                             event.kind = EventKind::communication;
                             while (wait != waits.end() && wait->kernel < id) ++wait;
                             if (wait != waits.end() && wait->kernel == id) event.waitNs = wait->waitNs;
                             return event;
                         }) &&
            readIntegers({"stream_id", "start_ns", "dur_ns", "rank", "kind"}, correlated, EventTable::memcpy, copies,
                         kMaxStreamDepth,
                         [this](const PageRows& row, int64_t) {
                             keepWork(row, kName + 1);
                             return TrackEvent{row.integer(kStart), row.integer(kDuration), nameOf(row, kName), 0,
                                               EventKind::copy};
                         }) &&
            readIntegers({"stream_id", "start_ns", "dur_ns", "rank"}, correlated, EventTable::memset, sets,
                         kMaxStreamDepth, [this](const PageRows& row, int64_t) {
                             keepWork(row, kName);
                             return TrackEvent{row.integer(kStart), row.integer(kDuration), 0, 0, EventKind::set};
                         });
        std::map<int64_t, StreamContent> streams;
        collectParts(kernels, EventTable::kernel, streams);
        collectParts(copies, EventTable::memcpy, streams);
        collectParts(sets, EventTable::memset, streams);
        for (auto& [stream, content] : streams) addStream(stream, std::move(content));
        return whole;
    }

    // First the lane with one part of each table, then one for every track of events that run beside those.
    void addStream(int64_t stream, StreamContent content) {
        std::vector<Lane::Part>& parts = content.parts;
        const auto found = m_run.streamNames.find(stream);
        const std::string name =
            (found == m_run.streamNames.end() ? fmt::format("stream #{}", stream) : found->second) + " " +
            contentOf(parts);
        std::vector<Lane> lanes;
        for (Lane::Part& part : parts) {
            auto free = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) {
                return std::none_of(lane.parts.begin(), lane.parts.end(),
                                    [&](const Lane::Part& other) { return other.table == part.table; });
            });
            if (free == lanes.end())
                free = lanes.insert(lanes.end(), {LaneKind::stream, numbered(name, lanes.size()), {}});
            free->parts.push_back(std::move(part));
        }
        for (Lane& lane : lanes) m_streams.push_back(std::move(lane));
        for (UndrawnEvents& more : content.undrawn) {
            more.lane = name;
            m_result->undrawn.push_back(std::move(more));
        }
    }

    // What ranges may have called for.
    void keepWork(const PageRows& row, int correlation) {
        if (m_calls.empty() || !row.isInteger(correlation) || isFar(row.integer(kStart)) ||
            isFar(row.integer(kDuration)))
            return;
        m_work.push_back({row.integer(correlation), row.integer(kStart),
                          row.integer(kStart) + std::max<int64_t>(0, row.integer(kDuration))});
    }

    void addDeviceRanges() {
        Stacks stacks;
        for (const DeviceRange& range : rangesOnDevice(std::move(m_ranges), std::move(m_calls), std::move(m_work)))
            stacks.try_emplace(range.thread, m_firstRange, kMaxNvtxDepth).first->second.add(range.event);
        addStacks(stacks, LaneKind::deviceRanges, EventTable::nvtxOnDevice,
                  [&](int64_t thread) { return "NVTX on the device, " + threadLane(thread); });
    }

    void addIdle() {
        const std::span<const IdleStretch> gaps = m_control.idle.of(m_reader, m_rank);
        if (gaps.empty()) return;
        const int64_t first = std::ranges::min(gaps, {}, &IdleStretch::row).row;
        TrackStack stack(first, 1);
        for (const IdleStretch& gap : gaps)
            stack.add({gap.startNs, gap.durNs, static_cast<uint32_t>(gap.cause), static_cast<uint32_t>(gap.row - first),
                       EventKind::idle});
        for (Track& track : stack.finish()) addLane(LaneKind::idle, "idle", EventTable::idleGap, std::move(track));
    }

    static std::string contentOf(const std::vector<Lane::Part>& parts) {
        bool compute = false, communication = false, memory = false;
        for (const Lane::Part& part : parts) {
            memory = memory || part.table != EventTable::kernel;
            for (size_t i = 0; part.table == EventTable::kernel && i < part.track.size() && !(compute && communication);
                 ++i)
                (part.track.kind(i) == EventKind::communication ? communication : compute) = true;
        }
        if (compute && communication) return "compute and communication";
        if (compute) return "compute";
        if (communication) return "communication";
        return memory ? "copies" : "";
    }

    template <typename Name>
    void addStacks(Stacks& stacks, LaneKind kind, EventTable table, Name&& name) {
        for (auto& [owner, stack] : stacks) {
            size_t depth = 0;
            keepUndrawn(m_result->undrawn, name(owner), table, stack);
            for (Track& track : stack.finish()) addLane(kind, numbered(name(owner), depth++), table, std::move(track));
        }
    }

    static void keepUndrawn(std::vector<UndrawnEvents>& undrawn, std::string lane, EventTable table,
                            TrackStack& stack) {
        if (auto events = stack.takeLeftOut(); !events.empty())
            undrawn.push_back({std::move(lane), table, stack.firstRow(), std::move(events)});
    }

    static void collectParts(Stacks& stacks, EventTable table, std::map<int64_t, StreamContent>& streams) {
        for (auto& [stream, stack] : stacks) {
            StreamContent& content = streams[stream];
            keepUndrawn(content.undrawn, {}, table, stack);
            for (Track& track : stack.finish()) content.parts.push_back({table, std::move(track)});
        }
    }

    void addLane(LaneKind kind, std::string label, EventTable table, Track track) {
        Lane lane{kind, std::move(label), {}};
        lane.parts.push_back({table, std::move(track)});
        m_result->lanes.push_back(std::move(lane));
    }

    // False when cancelled.
    template <typename Decode>
    bool read(const std::string& columns, EventTable table, Stacks& stacks, size_t maxDepth, Decode&& decode) {
        return inTable(table, [&](store::IdRange ids) {
            Statement rows(m_reader.database(), "SELECT " + columns + " FROM " + tableName(table) +
                                                    " WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
            rows.bind(1, ids.first).bind(2, ids.last);
            if (columns.find("?3") != std::string::npos) rows.bind(3, m_run.whole.endNs);
            const bool named = columns.find("name_id") != std::string::npos;
            return readRows(rows, named, ids, table, stacks, maxDepth, decode);
        });
    }

    // As above, of columns that hold integers. One more costs each row a little: correlations are read where ranges are
    // to be seen on the device.
    template <typename Decode>
    bool readIntegers(std::vector<std::string> columns, bool correlated, EventTable table, Stacks& stacks,
                      size_t maxDepth, Decode&& decode) {
        return inTable(table, [&](store::IdRange ids) {
            const bool named = std::ranges::find(columns, "name_id") != columns.end();
            if (correlated) columns.push_back("correlation_id");
            PageRows rows(m_reader.databaseOf(m_rank), tableName(table), columns, ids.first, ids.last);
            return readRows(rows, named, ids, table, stacks, maxDepth, decode);
        });
    }

    // Calls `readIds` with the ids of the rank's rows, if it has any; errors name the table. False when cancelled.
    template <typename ReadIds>
    bool inTable(EventTable table, ReadIds&& readIds) {
        try {
            Statement extent(m_reader.database(),
                             "SELECT first_id, last_id FROM extent WHERE table_name = ?1 AND rank = ?2");
            extent.bind(1, std::string_view(tableName(table))).bind(2, int64_t{m_rank});
            if (!extent.step() || extent.integer(1) < extent.integer(0)) return !m_control.cancelled;
            return readIds(store::IdRange{extent.integer(0), extent.integer(1)});
        } catch (const store::LockedFile&) {
            throw;
        } catch (const store::Error& error) {
            throw store::Error(error.file(), fmt::format("table {}: {}", tableName(table), error.cause()),
                               error.hint());
        }
    }

    template <typename Rows, typename Decode>
    bool readRows(Rows& rows, bool named, store::IdRange ids, EventTable table, Stacks& stacks, size_t maxDepth,
                  Decode&& decode) {
        const auto [first, last] = ids;
        if (table == EventTable::nvtx) m_firstRange = first;
        int64_t lastOwner = INT64_MIN, lastStart = INT64_MIN;
        TrackStack* stack = nullptr;
        uint32_t seen = 0;
        UnsoundRows unsound;
        UndrawnEvents ofOthers{{}, table, first, {}};
        while (rows.step()) {
            const uint32_t row = seen++;
            if (seen % kRowsBetweenChecks == 0) {
                m_control.rowsRead += kRowsBetweenChecks;
                if (m_control.cancelled) return false;
            }
            TrackEvent event = decode(rows, first + row);
            event.row = row;
            unsound.impossible +=
                !isSound(rows) || isFar(event.startNs) || isFar(event.durNs) || (named && !isName(event.name));
            unsound.unordered += event.startNs < lastStart;
            lastStart = event.startNs;
            if (event.durNs < 0) {
                ++unsound.negative;
                m_result->negative.push_back({table, first + row, event.durNs});
                event.durNs = 0;
            }
            const int64_t owner = rows.integer(kOwner);
            if (owner != lastOwner || !stack) stack = stackOf(owner, stacks, first, maxDepth);
            lastOwner = owner;
            if (stack)
                stack->add(event);
            else
                ofOthers.events.push_back(event);
        }
        m_control.rowsRead += seen % kRowsBetweenChecks;
        if (!ofOthers.events.empty()) m_result->undrawn.push_back(std::move(ofOthers));
        noteDamage(tableName(table), seen, static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1, unsound);
        return true;
    }

    static bool isFar(int64_t ns) noexcept { return ns > kFarthestNs || ns < -kFarthestNs; }

    // Of the rank that was asked for, with times that are numbers.
    template <typename Row>
    bool isSound(const Row& row) const {
        return row.isInteger(kStart) && row.isInteger(kDuration) && row.integer(kRank) == m_rank &&
               (row.isInteger(kOwner) || row.isNull(kOwner));
    }

    bool isName(uint32_t id) const { return id > 0 && id < m_run.strings.size(); }

    // Ids are without gaps: what is missing between them was there.
    void noteDamage(const char* table, uint64_t seen, uint64_t promised, const UnsoundRows& unsound) {
        std::string& damage = m_result->damage;
        const auto add = [&](const std::string& text) { damage += (damage.empty() ? "" : "; ") + text; };
        if (seen != promised) add(fmt::format("table {} holds {} of its {} events", table, seen, promised));
        const auto addRows = [&](int64_t rows, const char* what) {
            if (rows > 0) add(fmt::format("{} of the {} events in table {} {}", rows, seen, table, what));
        };
        addRows(unsound.impossible, "have a rank, time or name that cannot be");
        addRows(unsound.negative, "have a negative duration and are drawn as 0 ns");
        addRows(unsound.unordered, "begin before the event above them");
    }

    // Null where the rank has too many streams or threads to be shown.
    static TrackStack* stackOf(int64_t owner, Stacks& stacks, int64_t firstRow, size_t maxDepth) {
        if (const auto found = stacks.find(owner); found != stacks.end()) return &found->second;
        return stacks.size() < kMaxOwners ? &stacks.try_emplace(owner, firstRow, maxDepth).first->second : nullptr;
    }

    template <typename Row>
    static uint32_t nameOf(const Row& row, int column) {
        return static_cast<uint32_t>(std::clamp<int64_t>(row.integer(column), 0, Track::kMaxName));
    }

    static EventKind kindOfCall(int64_t kind) {
        switch (static_cast<store::ApiKind>(kind)) {
            case store::ApiKind::synchronize:
                return EventKind::blockingCall;
            case store::ApiKind::allocate:
            case store::ApiKind::free:
                return EventKind::allocation;
            default:
                return EventKind::api;
        }
    }

    static TimeRange extentOf(const std::vector<const Track*>& tracks) {
        TimeRange range{INT64_MAX, INT64_MIN};
        for (const Track* track : tracks) {
            if (track->empty()) continue;
            range.beginNs = std::min(range.beginNs, track->extent().beginNs);
            range.endNs = std::max(range.endNs, track->extent().endNs);
        }
        return range.beginNs == INT64_MAX ? TimeRange{} : range;
    }

    static std::string numbered(const std::string& name, size_t depth) {
        return depth == 0 ? name : fmt::format("{} ({})", name, depth + 1);
    }

    std::string threadLane(int64_t thread) const {
        const auto found = m_run.threadLanes.find(thread);
        return found == m_run.threadLanes.end() ? std::string("unknown thread") : found->second;
    }

    store::TraceReader& m_reader;
    const RunInfo& m_run;
    int32_t m_rank;
    LoadControl& m_control;
    std::shared_ptr<RankTracks> m_result;
    std::vector<Lane> m_streams;
    // Of ranges and of what they called for, until they are seen on the device; nothing in a run without ranges.
    std::vector<OpenRange> m_ranges;
    std::vector<LaunchCall> m_calls;
    std::vector<LaunchedWork> m_work;
    size_t m_rangeRows = 0;
    int64_t m_firstRange = 0;
};

}  // namespace

uint32_t ncclCallName(store::Op op) noexcept {
    return Track::kMaxName - static_cast<uint32_t>(op);
}

RankTracksPtr loadRankTracks(store::TraceReader& reader, const RunInfo& run, int32_t rank, LoadControl& control) {
    return RankLoader(reader, run, rank, control).load();
}

}  // namespace rankscope::gui
