// SPDX-License-Identifier: Apache-2.0
// Every export format is told the same of a run: tracks of ranks, and events on them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope::exports {

enum class EventKind : uint8_t {
    step,
    nvtx,
    ncclCall,
    apiCall,
    kernel,
    ncclKernel,
    copy,
    set,
    finding,
    synchronization,
    deviceEvent,
    proxyOp
};
/// The table of trace.db that an event is a row of; kernels of NCCL, steps and findings have a word of their own.
constexpr std::string_view toText(EventKind kind) {
    constexpr std::string_view kNames[] = {"step",        "nvtx",    "nccl_call", "api_call", "kernel",
                                           "nccl_kernel", "memcpy",  "memset",    "finding",  "synchronization",
                                           "cuda_event",  "proxy_op"};
    return kNames[static_cast<size_t>(kind)];
}

/// A row of the timeline. In one track events come by start, and either follow or enclose each other.
struct ExportedTrack {
    int64_t process = 0;  // the rank; kFindingsProcess
    int64_t id = 0;       // unique in the process
    std::string name;
};
inline constexpr int64_t kFindingsProcess = 1'000'000'000;

struct ExportedProcess {
    int64_t id = 0;    // the rank
    std::string name;  // "rank 3 (node1, GPU 1)"
    std::string host;
};

/// An arrow from event to event: from a launch to its kernel, or from member to member of a collective or message in
/// the order of their arrival.
struct ExportedFlow {
    enum class Place : uint8_t { first, between, last };
    uint64_t id = 0;  // the same for all its events
    Place place = Place::first;
    bool isLaunch = false;  // else a collective's
};

struct ExportedEvent {
    EventKind kind = EventKind::kernel;
    std::string_view name;         // valid during the call; any bytes
    int64_t startNs = 0;           // on the job clock
    std::optional<int64_t> durNs;  // unknown of a range that was never closed; 0 of a mark
    std::optional<int64_t> step;   // that it starts in
    std::optional<int64_t> bytes, communicator, seq, correlation, gridBlocks, blockThreads, peer, channels, waitNs,
        transferNs, lastRank;
    std::string_view op, dataType, algorithm, protocol, domain, detail;  // empty: unknown, or does not apply
    std::vector<ExportedFlow> flows;
    /// What else stands in the columns of its row, by their names.
    std::vector<std::pair<const char*, int64_t>> columns;
};

/// Tells what is known of an event beside its name and time: `tell(name, value)`, in the order of the columns of a
/// table.
template <typename Tell>
void forEachArgument(const ExportedEvent& event, Tell&& tell) {
    tell("step", event.step);
    tell("op", event.op);
    tell("bytes", event.bytes);
    tell("data_type", event.dataType);
    tell("communicator", event.communicator);
    tell("seq", event.seq);
    tell("algorithm", event.algorithm);
    tell("protocol", event.protocol);
    tell("channels", event.channels);
    tell("peer", event.peer);
    tell("wait_ns", event.waitNs);
    tell("transfer_ns", event.transferNs);
    tell("last_rank", event.lastRank);
    tell("grid_blocks", event.gridBlocks);
    tell("block_threads", event.blockThreads);
    tell("correlation", event.correlation);
    tell("domain", event.domain);
}

/// Does as forEachArgument(), and tells the other columns and a finding's details behind that: for formats whose events
/// have arguments of any names.
template <typename Tell>
void forEachDetail(const ExportedEvent& event, Tell&& tell) {
    forEachArgument(event, tell);
    for (const auto& [name, value] : event.columns) tell(name, std::optional<int64_t>(value));
    tell("finding", event.detail);
}

/// Writes one format. Called in this order: processes and tracks before the events on them, all events of a track by
/// start.
class ExportSink {
  public:
    virtual ~ExportSink() = default;
    virtual void process(const ExportedProcess& process) = 0;
    virtual void track(const ExportedTrack& track) = 0;
    virtual void event(const ExportedTrack& track, const ExportedEvent& event) = 0;
    /// A value that holds from this time on; formats without curves leave it out.
    virtual void counter(int64_t /*process*/, std::string_view /*name*/, int64_t /*ns*/, int64_t /*value*/) {}
    virtual void finish() = 0;
};

/// Chrome's trace event format (JSON object with traceEvents), which Perfetto and chrome://tracing open: a process per
/// rank, a thread per track, X events in microseconds with three decimals (whole nanoseconds), flow events from
/// launches to kernels and between the members of a collective. `about` (about_run.h) stands in otherData.
std::unique_ptr<ExportSink> chromeTrace(std::ostream& out, const std::string& about);

/// Perfetto's own format (protobuf, .pftrace), a third of the size of JSON: a process per rank, a track per track,
/// slices with their arguments, waiting and transfer inside NCCL's kernels, flows, and the steps' lengths as a counter.
/// `about` (about_run.h) is metadata of its first packet.
std::unique_ptr<ExportSink> perfettoTrace(std::ostream& out, const std::string& about);

/// Writes one line per event (RFC 4180), the first one with the names of the columns. Unknown values are empty; times
/// are nanoseconds on the job clock.
std::unique_ptr<ExportSink> csvTable(std::ostream& out);

}  // namespace rankscope::exports
