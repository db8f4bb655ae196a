// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/walk_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include "analyzer/export/collective_members.h"
#include "analyzer/export/kernel_name.h"
#include "analyzer/export/rank_tracks.h"
#include "analyzer/export/selected_times.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/reader.h"
#include "collector/store/tables.h"

namespace rankscope::exports {
namespace {

std::string_view copyName(int32_t kind) {
    switch (kind) {  // CUpti_ActivityMemcpyKind
        case 1:
            return "host to device";
        case 2:
            return "device to host";
        case 8:
            return "device to device";
        case 10:
            return "peer to peer";
        default:
            return "copy";
    }
}

/// Columns of rows that events tell by other words, or that name rows which are not exported.
constexpr std::string_view kToldOtherwise[] = {"id",
                                               "rank",
                                               "start_ns",
                                               "time_ns",
                                               "dur_ns",
                                               "name_id",
                                               "domain_id",
                                               "op",
                                               "bytes",
                                               "data_type",
                                               "seq",
                                               "algorithm",
                                               "protocol",
                                               "channels",
                                               "peer",
                                               "grid_blocks",
                                               "block_threads",
                                               "communicator_id",
                                               "correlation_id"};

template <typename Value>
void addColumn(ExportedEvent& event, const char* name, const Value& value) {
    if constexpr (requires { value.has_value(); }) {
        if (value) addColumn(event, name, *value);
    } else if constexpr (std::is_convertible_v<Value, int64_t> || std::is_enum_v<Value>) {
        if (std::ranges::find(kToldOtherwise, name) == std::end(kToldOtherwise))
            event.columns.emplace_back(name, static_cast<int64_t>(value));
    }
}

/// Tells all that stands in a row and not yet in its event.
template <typename Row>
void addColumns(ExportedEvent& event, const Row& row) {
    std::apply([&](const auto&... column) { (addColumn(event, column.name, row.*(column.field)), ...); },
               store::Table<Row>::kColumns);
}

/// Fills in what calls and collectives both tell.
template <typename Row>
void addCommunication(ExportedEvent& event, const Row& row) {
    event.op = store::toText(row.op);
    event.dataType = store::toText(row.dataType);
    event.algorithm = store::toText(row.algorithm);
    event.protocol = store::toText(row.protocol);
    event.communicator = row.communicatorId;
    event.seq = row.seq;
    event.bytes = row.bytes;
}

std::string_view synchronizationName(int32_t kind) {
    switch (kind) {  // CUpti_ActivitySynchronizationType
        case 1:
            return "event synchronised";
        case 2:
            return "stream waits for event";
        case 3:
            return "stream synchronised";
        case 4:
            return "device synchronised";
        default:
            return "synchronised";
    }
}

template <typename Row>
int64_t startOf(const Row& row) {
    if constexpr (requires { row.startNs; })
        return row.startNs;
    else
        return row.timeNs;
}

class Walk {
  public:
    Walk(store::TraceReader& trace, ExportSink& sink, const ExportSelection& selection)
        : m_trace(trace),
          m_sink(sink),
          m_selected(trace, selection),
          m_members(trace, [this](int rank, int64_t ns) { return m_selected.holds(rank, ns); }) {
        for (store::Host& host : trace.all<store::Host>()) m_hosts[host.id] = host.name;
        for (store::Device& device : trace.all<store::Device>()) m_devices[device.id] = device;
        for (store::Stream& stream : trace.all<store::Stream>())
            m_streams[stream.id] = fmt::format("stream {}", stream.nativeId);
        for (store::Thread& thread : trace.all<store::Thread>())
            m_threads[thread.id] = thread.name && !thread.name->empty()
                                       ? *thread.name
                                       : fmt::format("thread {}", thread.tid.value_or(thread.id));
        for (store::Step& step : trace.all<store::Step>()) m_steps[step.rank].push_back(step);
        for (auto& [rank, steps] : m_steps) std::ranges::sort(steps, {}, &store::Step::startNs);
    }

    void rank(const store::Rank& row) {
        if (!m_selected.hasRank(row.rank)) return;
        m_rank = row.rank;
        m_time = m_selected.of(row.rank);
        m_sink.process({row.rank, rankName(row), hostName(row)});
        m_tracks.emplace(row.rank, m_sink);
        steps();
        ranges();
        ncclCalls();
        // An arrow needs both ends: launches without a recorded kernel get none.
        m_launched = correlations();
        apiCalls();
        kernels();
        copies();
        sets();
        synchronizations();
        deviceEvents();
        if (m_trace.hasTable("proxy_op")) proxyOps();
        if (m_trace.hasTable("counter")) counters();
    }

    void findings() {
        store::Statement rows(m_trace.database(),
                              "SELECT diagnosis, title, start_ns, end_ns, report_json FROM finding WHERE verdict = "
                              "'found' AND end_ns > start_ns ORDER BY start_ns, id");
        TrackLanes lanes;
        std::map<size_t, ExportedTrack> tracks;
        while (rows.step()) {
            if (!m_selected.touches(rows.integer(2), rows.integer(3))) continue;
            if (tracks.empty()) m_sink.process({kFindingsProcess, "findings", ""});
            const int64_t startNs = rows.integer(2), endNs = rows.integer(3);
            const size_t lane = lanes.place(startNs, endNs);
            const auto [at, isNew] = tracks.try_emplace(
                lane, ExportedTrack{kFindingsProcess, static_cast<int64_t>(lane), "where they are best seen"});
            if (isNew) m_sink.track(at->second);
            const std::string name = fmt::format("{} {}", rows.text(0), rows.text(1));
            const std::string detail(rows.text(4));
            ExportedEvent event;
            event.kind = EventKind::finding;
            event.name = name;
            event.startNs = startNs;
            event.durNs = endNs - startNs;
            event.detail = detail;
            m_sink.event(at->second, event);
        }
    }

  private:
    std::string hostName(const store::Rank& row) const {
        const auto host = m_hosts.find(row.hostId.value_or(-1));
        return host == m_hosts.end() ? std::string() : host->second;
    }

    std::string rankName(const store::Rank& row) const {
        std::string name = fmt::format("rank {}", row.rank);
        const std::string host = hostName(row);
        const auto device = m_devices.find(row.deviceId.value_or(-1));
        if (!host.empty() && device != m_devices.end())
            return name + fmt::format(" ({}, GPU {})", host, device->second.ordinal);
        return host.empty() ? name : name + " (" + host + ")";
    }

    std::optional<int64_t> stepAt(int64_t timeNs) const {
        const auto found = m_steps.find(m_rank);
        if (found == m_steps.end()) return std::nullopt;
        const auto after = std::ranges::upper_bound(found->second, timeNs, {}, &store::Step::startNs);
        if (after == found->second.begin()) return std::nullopt;
        const store::Step& step = *(after - 1);
        return timeNs < step.startNs + step.durNs ? std::optional<int64_t>(step.step) : std::nullopt;
    }

    std::string_view kernelName(int64_t nameId) {
        const auto [at, isNew] = m_kernelNames.try_emplace(nameId);
        if (isNew) at->second = exportedKernelName(m_trace.string(nameId));
        return at->second;
    }

    /// The rank's rows of a table that begin in the selected time.
    template <typename Row, typename Function>
    void forEach(Function&& function) {
        auto rows = m_time.fromNs == INT64_MIN ? m_trace.cursor<Row>(m_rank)
                                               : m_trace.cursor<Row>(m_rank, m_time.fromNs, m_time.toNs);
        Row row;
        while (rows.next(row))
            if (m_time.holds(startOf(row))) function(static_cast<const Row&>(row));
    }

    std::string threadName(const store::Maybe<int32_t>& thread) const {
        const auto at = m_threads.find(thread.value_or(-1));
        return at == m_threads.end() ? "thread" : at->second;
    }

    /// The correlation ids of all work on the device, ascending.
    std::vector<uint32_t> correlations() {
        std::vector<uint32_t> found;
        const auto take = [&](const auto& row) {
            if (row.correlationId) found.push_back(*row.correlationId);
        };
        forEach<store::Kernel>(take);
        forEach<store::Memcpy>(take);
        forEach<store::Memset>(take);
        std::ranges::sort(found);
        return found;
    }

    ExportedEvent begun(EventKind kind, int64_t startNs, std::optional<int64_t> durNs) const {
        ExportedEvent event;
        event.kind = kind;
        event.startNs = startNs;
        event.durNs = durNs;
        event.step = stepAt(startNs);
        return event;
    }

    void tell(TrackKind kind, int64_t owner, const std::string& track, const ExportedEvent& event) {
        const int64_t endNs = event.startNs + event.durNs.value_or(0);
        m_sink.event(m_tracks->place(kind, owner, track, event.startNs, endNs), event);
    }

    void addLaunch(ExportedEvent& event, const store::Maybe<uint32_t>& correlation, const std::vector<uint32_t>& others,
                   ExportedFlow::Place place) const {
        if (!correlation) return;
        event.correlation = *correlation;
        if (std::ranges::binary_search(others, *correlation))
            event.flows.push_back({static_cast<uint64_t>(m_rank) << 32 | *correlation, place, true});
    }

    void steps() {
        for (const store::Step& step : m_steps[m_rank]) {
            if (!m_time.holds(step.startNs)) continue;
            const std::string name = fmt::format("step {}{}", step.step, step.warmUp ? " (warm-up)" : "");
            ExportedEvent event = begun(EventKind::step, step.startNs, step.durNs);
            event.name = name;
            tell(TrackKind::steps, 0, "steps", event);
        }
    }

    void ranges() {
        forEach<store::NvtxRange>([&](const store::NvtxRange& row) {
            ExportedEvent event = begun(EventKind::nvtx, row.startNs, row.durNs);
            event.name = m_trace.string(row.nameId);
            if (row.domainId) event.domain = m_trace.string(*row.domainId);
            addColumns(event, row);
            tell(TrackKind::nvtx, row.threadId.value_or(0), threadName(row.threadId) + ": NVTX", event);
        });
    }

    void ncclCalls() {
        forEach<store::NcclCall>([&](const store::NcclCall& row) {
            ExportedEvent event = begun(EventKind::ncclCall, row.startNs, row.durNs);
            addCommunication(event, row);
            event.name = event.op;
            if (row.peer) event.peer = *row.peer;
            if (row.channels) event.channels = *row.channels;
            addColumns(event, row);
            event.columns.emplace_back("call_id", row.id);
            tell(TrackKind::nccl, row.threadId.value_or(0), threadName(row.threadId) + ": NCCL", event);
        });
    }

    void apiCalls() {
        std::vector<uint32_t> launches;
        forEach<store::ApiCall>([&](const store::ApiCall& row) {
            ExportedEvent event = begun(EventKind::apiCall, row.startNs, row.durNs);
            event.name = m_trace.string(row.nameId);
            addLaunch(event, row.correlationId, m_launched, ExportedFlow::Place::first);
            if (!event.flows.empty()) launches.push_back(*row.correlationId);
            addColumns(event, row);
            tell(TrackKind::api, row.threadId, threadName(row.threadId) + ": CUDA", event);
        });
        std::ranges::sort(launches);
        m_launched = std::move(launches);  // from here on: those whose call is there
    }

    void addCollective(ExportedEvent& event, const store::Collective& collective) const {
        addCommunication(event, collective);
        event.transferNs = collective.transferNs;
        if (collective.lastRank) event.lastRank = *collective.lastRank;
    }

    /// Names the peer as a rank of the job.
    void addMessage(ExportedEvent& event, const store::P2p& message) const {
        const bool sends = message.srcRank == m_rank;
        event.op = sends ? "send" : "recv";
        event.peer = sends ? message.dstRank : message.srcRank;
        event.communicator = message.communicatorId;
        event.seq = message.seq;
        event.bytes = message.bytes;
        event.transferNs = message.transferNs;
    }

    /// Tells what an NCCL kernel carried; of several calls that share it, the first.
    void addMembers(ExportedEvent& event, std::span<const MemberKernel> members) const {
        if (members.empty()) return;
        const MemberKernel& first = members.front();
        if (first.isMessage) {
            if (const store::P2p* message = m_members.message(first.id)) addMessage(event, *message);
        } else if (const store::Collective* collective = m_members.collective(first.id)) {
            addCollective(event, *collective);
        }
        if (first.waitNs >= 0) event.waitNs = first.waitNs;
        for (const MemberKernel& member : members)
            if (member.hasFlow) event.flows.push_back({member.flowId(), member.place, false});
    }

    void kernels() {
        forEach<store::Kernel>([&](const store::Kernel& row) {
            ExportedEvent event = begun(row.nccl == store::NcclKernel::no ? EventKind::kernel : EventKind::ncclKernel,
                                        row.startNs, row.durNs);
            event.name = kernelName(row.nameId);
            if (row.gridBlocks) event.gridBlocks = *row.gridBlocks;
            if (row.blockThreads) event.blockThreads = *row.blockThreads;
            addLaunch(event, row.correlationId, m_launched, ExportedFlow::Place::last);
            addMembers(event, m_members.of(m_rank, row.id));
            addColumns(event, row);
            // Calls name it by this id; the kernels that no call has need none.
            if (row.nccl != store::NcclKernel::no) event.columns.emplace_back("kernel_id", row.id);
            if (event.name != m_trace.string(row.nameId)) event.columns.emplace_back("symbol", row.nameId);
            tell(TrackKind::stream, row.streamId, m_streams[row.streamId], event);
        });
    }

    void copies() {
        forEach<store::Memcpy>([&](const store::Memcpy& row) {
            ExportedEvent event = begun(EventKind::copy, row.startNs, row.durNs);
            event.name = copyName(row.kind);
            event.bytes = row.bytes;
            addColumns(event, row);
            addLaunch(event, row.correlationId, m_launched, ExportedFlow::Place::last);
            tell(TrackKind::stream, row.streamId + kCopyTracks, m_streams[row.streamId] + ": copies", event);
        });
    }

    void sets() {
        forEach<store::Memset>([&](const store::Memset& row) {
            ExportedEvent event = begun(EventKind::set, row.startNs, row.durNs);
            event.name = "set";
            event.bytes = row.bytes;
            addColumns(event, row);
            addLaunch(event, row.correlationId, m_launched, ExportedFlow::Place::last);
            tell(TrackKind::stream, row.streamId + 2 * kCopyTracks, m_streams[row.streamId] + ": sets", event);
        });
    }

    void synchronizations() {
        forEach<store::Synchronization>([&](const store::Synchronization& row) {
            ExportedEvent event = begun(EventKind::synchronization, row.startNs, row.durNs);
            event.name = synchronizationName(row.kind);
            if (row.correlationId) event.correlation = *row.correlationId;
            addColumns(event, row);
            tell(TrackKind::waits, row.streamId.value_or(0),
                 (row.streamId ? m_streams[*row.streamId] : "all streams") + ": synchronisation", event);
        });
    }

    void deviceEvents() {
        forEach<store::CudaEvent>([&](const store::CudaEvent& row) {
            ExportedEvent event = begun(EventKind::deviceEvent, row.timeNs, std::nullopt);
            event.name = "event";
            if (row.correlationId) event.correlation = *row.correlationId;
            addColumns(event, row);
            tell(TrackKind::stream, row.streamId + 3 * kCopyTracks, m_streams[row.streamId] + ": events", event);
        });
    }

    void proxyOps() {
        forEach<store::ProxyOp>([&](const store::ProxyOp& row) {
            ExportedEvent event = begun(EventKind::proxyOp, row.startNs, row.durNs);
            event.name = row.isSend ? "send" : "receive";
            event.bytes = row.bytes;
            event.communicator = row.communicatorId;
            event.peer = row.peer;
            addColumns(event, row);
            tell(TrackKind::network, row.channel, fmt::format("network, channel {}", row.channel), event);
        });
    }

    void counters() {
        forEach<store::Counter>([&](const store::Counter& row) {
            m_sink.counter(m_rank, m_trace.string(row.nameId), row.timeNs, row.value);
        });
    }

    // Tables are walked one after the other: copies and sets of a stream have tracks of their own, so that each track's
    // events come by start.
    static constexpr int64_t kCopyTracks = int64_t{1} << 29;

    store::TraceReader& m_trace;
    ExportSink& m_sink;
    SelectedTimes m_selected;
    CollectiveMembers m_members;
    std::map<int64_t, std::string> m_hosts;
    std::map<int64_t, store::Device> m_devices;
    std::unordered_map<int64_t, std::string> m_streams, m_threads, m_kernelNames;
    std::map<int, std::vector<store::Step>> m_steps;
    std::vector<uint32_t> m_launched;
    int m_rank = 0;
    TimeRange m_time;                    // of m_rank
    std::optional<RankTracks> m_tracks;  // of m_rank
};

}  // namespace

void walkTrace(store::TraceReader& trace, ExportSink& sink, const ExportSelection& selection) {
    Walk walk(trace, sink, selection);
    for (const store::Rank& rank : trace.all<store::Rank>()) walk.rank(rank);
    walk.findings();
    sink.finish();
}

}  // namespace rankscope::exports
