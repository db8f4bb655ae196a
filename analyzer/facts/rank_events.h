// SPDX-License-Identifier: Apache-2.0
// Holds what one rank's device and host did: the input of phase 1, for one rank at a time per worker.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::facts {

/// Two kernels with the same key do the same work: the name and the launch shape agree.
struct KernelKey {
    int32_t nameId = 0;
    int64_t gridBlocks = -1;
    int64_t blockThreads = -1;
    auto operator<=>(const KernelKey&) const = default;
};

struct ComputeTask {
    int64_t startNs = 0;
    int64_t endNs = 0;
    KernelKey key;
    int32_t streamId = 0;
    int32_t row = 0;  // kernel.id - RankEvents::firstKernelId
    int64_t correlation = -1;
};

/// Records a copy or a set.
struct MemoryTask {
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t correlation = -1;
    int64_t copyId = 0;  // row of memcpy; 0: a set
    int32_t streamId = 0;
    int64_t bytes = 0;
    bool toDevice = false;  // host to device
    bool toHost = false;    // device to host
    bool pageable = false;  // the host side is pageable memory
    bool pinned = false;    // the host side is known to be pinned

    /// Up to here the driver stages a pageable copy in one piece and returns at once (CUDA driver API, "API
    /// synchronization behavior").
    static constexpr int64_t kStagedBytes = 64 * 1024;
};

/// Records one NCCL kernel with the calls it carries.
struct CommTask {
    int64_t kernelId = 0;
    int64_t collectiveId = 0;    // 0: none matched
    int64_t communicatorId = 0;  // 0: unknown
    store::Op op = store::Op::unknown;
    store::DataType dataType = store::DataType::unknown;
    int64_t bytes = -1;  // of all its calls; -1 unknown
    int32_t streamId = 0;
    int64_t correlation = -1;
    int32_t calls = 0;
    int32_t lastRank = -1;                                   // who arrived last; -1 unknown
    store::Algorithm algorithm = store::Algorithm::unknown;  // of its collective, from the profiler plugin
    store::Protocol protocol = store::Protocol::unknown;
    int32_t channels = 0;   // of its calls, else its kernel's blocks: NCCL launches one per channel; 0 unknown
    int64_t launchNs = -1;  // end of the NCCL call on the host; -1 unknown
    int64_t readyNs = -1;   // when the work that its stream had to wait for was done (findReadyTimes()); -1 unknown
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t waitNs = 0;     // first part of the kernel, waiting for the others
    bool waitKnown = true;  // false: some member's arrival is not recorded, and waitNs is an estimate
    // Filled by summarize():
    int step = -1;  // number of the step it starts in; -1 in warm-up and outside
    int64_t exposedWaitNs = 0;
    int64_t exposedTransferNs = 0;
    int64_t lateTransferNs = 0;       // part of it that compute would have hidden had this rank waited for nobody
    int64_t computeAtReadyNs = 0;     // device compute of the step done when its data were there, if that is known
    int64_t computeBeforeNs = 0;      // device compute of the step done when it starts
    int64_t computeAtEndNs = 0;       // and when it ends
    int64_t idleNetworkBeforeNs = 0;  // compute without any communication since the one before it, in the step
    int64_t idleNetworkAfterNs = 0;   // the same up to the next one

    int64_t transferNs() const { return endNs - startNs - waitNs; }
    /// False when it is unknown how much of it was waiting for others, since they are not recorded or it is matched
    /// with nothing.
    bool splitKnown() const { return waitKnown && (collectiveId != 0 || lastRank >= 0); }
    bool pointToPoint() const { return store::isP2p(op); }
};

/// Records a host call that may explain an idle device.
struct HostCall {
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t correlation = -1;
    store::ApiKind kind = store::ApiKind::other;
    bool waits = false;  // returns only when device work is done: a synchronisation, or a copy that does not return
                         // before its end
    bool pageableCopy = false;  // a copy over 64 KiB between device and pageable memory
    bool copyToDevice = false;  // is a copy from host to device, or waits for the stream right behind one of its thread
    int64_t id = 0;             // row of api_call
    int32_t nameId = 0;
    int32_t threadId = 0;

    /// True when it puts work on the device.
    bool submits() const {
        return kind == store::ApiKind::launch || kind == store::ApiKind::graphLaunch || kind == store::ApiKind::copy ||
               kind == store::ApiKind::set;
    }
    bool allocates() const { return kind == store::ApiKind::allocate || kind == store::ApiKind::free; }
};

/// Records a range that the program marked on a host thread; or a CPU operator or Python function of an imported trace,
/// kept where it tells what the host did (collector/importers/host_operations.h).
struct HostRange {
    int64_t startNs = 0;
    int64_t endNs = 0;
    int32_t nameId = 0;
    int32_t threadId = 0;
    bool loadsData = false;  // its name says that it fetches the next batch
    int64_t id = 0;          // row of nvtx
    int64_t usualNs = -1;    // of an operation: median duration of its name; -1 unknown
};

/// Records a call of cudaEventRecord.
struct EventRecord {
    int64_t correlation = -1;
    int64_t eventId = 0;
    int32_t streamId = 0;
};

/// Records a wait of the host or of a stream, as CUPTI tells it.
struct SynchronizationRecord {
    enum class Kind : uint8_t { unknown, event, streamWaitEvent, stream, context };  // as CUPTI numbers them
    int64_t correlation = -1;
    int64_t eventId = -1;  // -1: none, or unknown
    int32_t streamId = 0;  // 0: the whole context, or unknown
    Kind kind = Kind::unknown;
};

/// Says what a rank's NIC sent of one collective or message to one peer on another node, as NCCL's proxy thread timed
/// it on this host. What a proxy did for another process (PXN) is left out: whose link it used is unknown.
struct NetworkSend {
    int64_t communicatorId = 0;
    int64_t callId = 0;     // row of nccl_call
    int32_t peer = 0;       // rank in the communicator
    int64_t bytes = 0;      // in all channels
    int64_t networkNs = 0;  // on the network: of the channel that was there longest, for they run side by side
    int64_t rowId = 0;      // of proxy_op: that channel's
};

struct RankEvents {
    int rank = 0;
    int64_t firstKernelId = 0;
    std::vector<ComputeTask> compute;       // by start
    std::vector<CommTask> communication;    // by start
    std::vector<MemoryTask> memory;         // by start
    std::vector<HostCall> hostCalls;        // by start
    std::vector<HostRange> ranges;          // by start
    std::vector<HostRange> operations;      // by start
    bool operationsRecorded = false;        // the trace says what its hosts did besides calls of CUDA: silence means
                                            // something else than work that nobody recorded
    std::vector<EventRecord> eventRecords;  // by time
    std::vector<SynchronizationRecord> synchronizations;  // by start
    std::vector<NetworkSend> networkSends;                // by time; empty without the profiler plugin and its table
    std::vector<store::KernelSpan> kernelSpans;           // by start; of recordings that hold kernels as summaries only
    std::vector<store::KernelSummary> kernelSummaries;    // by start
    bool stepsBeginOnHost = true;  // with a range, or when an update is launched, not where a period happens to begin
};

RankEvents readRankEvents(store::TraceReader& trace, const TraceFacts& facts, int rank);

/// True when a range of this name waits for or fetches the next batch. PyTorch's `enumerate(DataLoader)#…`, `data`,
/// `next_batch`, `load_input`, `Data loading` do; `DistributedDataParallel.forward`, `BatchNorm` or `input_grad` do
/// not.
bool namesDataLoading(std::string_view name);

/// Returns the numbers of steps in which the host submitted work that has no record on the device: dropped by CUPTI, or
/// not delivered when the process was killed. What the device did there is unknown, not idle. Empty for a rank whose
/// submissions cannot be joined with device records at all.
std::vector<int> stepsWithLostRecords(const RankEvents& events, const RankFacts& facts);

/// Fills CommTask::readyNs where the stream was given something to wait for before. A collective without a wait of its
/// own is ready with the one before it when it was called while that one ran, else when that one had ended. `events`
/// needs all device work, hostCalls, eventRecords and synchronizations.
void findReadyTimes(RankEvents& events);

}  // namespace rankscope::facts
