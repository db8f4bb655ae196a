// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/rank_summary.h"

#include <algorithm>
#include <cctype>

#include "collector/ingest/launch_order.h"
#include "collector/ingest/period_cuts.h"
#include "collector/ingest/step_names.h"
#include "collector/ingest/update_cuts.h"

namespace rankscope::collector {
namespace {

/// Ranges of one pattern beyond this are no steps.
constexpr int64_t kMaxStepRanges = 100'000;

/// "ProfilerStep#12" and "step 12" count as one range that repeats.
std::string patternOf(std::string_view name) {
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back()))) name.remove_suffix(1);
    while (!name.empty() && std::string_view(" #:_-=/[(").find(name.back()) != std::string_view::npos)
        name.remove_suffix(1);
    return std::string(name);
}

template <typename Row>
int64_t endOf(const Row& row) {
    if constexpr (requires { row.timeNs; }) {
        return row.timeNs;
    } else if constexpr (requires { row.durNs.has_value(); }) {
        return row.startNs + row.durNs.value_or(0);
    } else {
        return row.startNs + row.durNs;
    }
}

template <typename Row>
int64_t startOf(const Row& row) {
    if constexpr (requires { row.timeNs; }) {
        return row.timeNs;
    } else {
        return row.startNs;
    }
}

template <typename Row>
void widen(const std::vector<Row>& rows, int64_t& first, int64_t& last) {
    for (const Row& row : rows) {
        first = std::min(first, startOf(row));
        last = std::max(last, endOf(row));
    }
}

void addCalls(const RankRecording& recording, RankSummary& summary) {
    summary.calls.reserve(recording.ncclCalls.size());
    for (const store::NcclCall& call : recording.ncclCalls) {
        CallFact fact;
        fact.communicator = static_cast<int32_t>(call.communicatorId.value_or(-1));
        fact.op = call.op;
        fact.dataType = call.dataType;
        fact.algorithm = call.algorithm;
        fact.protocol = call.protocol;
        fact.peer = call.peer.value_or(-1);
        fact.seq = call.seq.value_or(-1);
        fact.bytes = call.bytes.value_or(-1);
        fact.hostStartNs = call.startNs;
        fact.callIndex = static_cast<int64_t>(summary.calls.size());
        if (call.kernelId) {
            const store::Kernel& kernel = recording.kernels[static_cast<size_t>(*call.kernelId)];
            fact.kernelIndex = *call.kernelId;
            fact.arrivalNs = kernel.startNs;
            fact.endNs = kernel.startNs + kernel.durNs;
        }
        summary.calls.push_back(fact);
    }
}

void addRanges(const RankRecording& recording, RankSummary& summary) {
    std::vector<int32_t> patternOfName(recording.strings.size(), -1);
    std::vector<std::string> patterns;
    std::map<std::string, int32_t> patternIds;
    std::vector<int64_t> counts;
    const auto patternId = [&](int32_t nameId) {
        int32_t& id = patternOfName[static_cast<size_t>(nameId)];
        if (id < 0) {
            id = patternIds.try_emplace(patternOf(recording.strings[nameId]), static_cast<int32_t>(patternIds.size()))
                     .first->second;
            if (static_cast<size_t>(id) == patterns.size()) patterns.push_back(patternOf(recording.strings[nameId]));
            counts.resize(patterns.size());
        }
        return id;
    };
    const auto eligible = [](const store::NvtxRange& range) {
        return range.kind != store::NvtxKind::mark && range.durNs && !range.domainId;
    };
    for (const store::NvtxRange& range : recording.nvtx) {
        if (eligible(range)) ++counts[static_cast<size_t>(patternId(range.nameId))];
    }
    if (counts.empty()) return;
    const LaunchOrder launches(recording);
    for (const store::NvtxRange& range : recording.nvtx) {
        if (!eligible(range)) continue;
        const auto id = static_cast<size_t>(patternId(range.nameId));
        if (counts[id] > kMaxStepRanges || patterns[id].empty()) continue;
        const int64_t endNs = range.startNs + *range.durNs;
        summary.ranges.push_back({patterns[id], range.depth, range.startNs, endNs, launches.drainedNs(range.startNs),
                                  launches.drainedNs(endNs)});
    }
}

/// Copies to the host and from it, by launch.
struct LaunchedCopy {
    int64_t launchNs = 0;
    bool toHost = false;
};

std::vector<LaunchedCopy> copiesInLaunchOrder(const RankRecording& recording) {
    constexpr int kHostToDevice = 1, kDeviceToHost = 2;  // CUpti_ActivityMemcpyKind
    const LaunchTimes launches(recording.apiCalls);
    std::vector<LaunchedCopy> copies;
    for (const store::Memcpy& copy : recording.memcpys)
        if (copy.kind == kHostToDevice || copy.kind == kDeviceToHost)
            copies.push_back({launches.of(copy.correlationId, copy.startNs), copy.kind == kDeviceToHost});
    std::stable_sort(copies.begin(), copies.end(),
                     [](const LaunchedCopy& a, const LaunchedCopy& b) { return a.launchNs < b.launchNs; });
    return copies;
}

/// When the host is done with a step whose last kernel it launched at `lastNs`: it may read back the step's loss before
/// it sends the next batch, or launches a kernel at `nextNs`.
int64_t readBackNs(const std::vector<LaunchedCopy>& copies, int64_t lastNs, int64_t nextNs) {
    int64_t doneNs = lastNs;
    auto copy = std::upper_bound(copies.begin(), copies.end(), lastNs,
                                 [](int64_t ns, const LaunchedCopy& c) { return ns < c.launchNs; });
    for (; copy != copies.end() && copy->launchNs < nextNs && copy->toHost; ++copy) doneNs = copy->launchNs;
    return doneNs;
}

std::vector<StepMark> marksAt(const KernelSequence& kernels, const Cuts& cuts, const LaunchOrder& launches,
                              const std::vector<LaunchedCopy>& copies) {
    std::vector<StepMark> marks;
    for (const size_t cut : cuts) {
        // The first step begins with its first kernel, each other one when the host is done with the one before.
        const int64_t nextNs = cut < kernels.size() ? kernels[cut].launchNs : std::numeric_limits<int64_t>::max();
        const int64_t hostNs = marks.empty() ? nextNs : readBackNs(copies, kernels[cut - 1].launchNs, nextNs) + 1;
        marks.push_back({hostNs, launches.drainedNs(hostNs)});
    }
    return marks;
}

/// Steps that PyTorch's profiler names need no other evidence. Any other name may turn out not to be a step's.
bool namesSteps(const RankSummary& summary) {
    return std::any_of(summary.ranges.begin(), summary.ranges.end(),
                       [](const RangeFact& range) { return stepNameOf(range.pattern) == StepName::profilerStep; });
}

void addMarks(const RankRecording& recording, RankSummary& summary) {
    summary.computes = std::any_of(recording.kernels.begin(), recording.kernels.end(),
                                   [](const store::Kernel& kernel) { return kernel.nccl == store::NcclKernel::no; });
    if (!summary.computes || namesSteps(summary)) return;
    const LaunchOrder launches(recording);
    const KernelSequence kernels = kernelsInLaunchOrder(recording);
    const std::vector<LaunchedCopy> copies = copiesInLaunchOrder(recording);
    summary.updateMarks = marksAt(kernels, cutsByUpdates(recording, kernels), launches, copies);
    summary.periodMarks = marksAt(kernels, cutsByPeriod(kernels), launches, copies);
}

void addGaps(const RankRecording& recording, RankSummary& summary) {
    for (const LocalCallGap& gap : recording.callGaps) summary.gaps.emplace_back(gap.fromNs, gap.untilNs);
    std::ranges::sort(summary.gaps);
    size_t last = 0;
    for (size_t i = 1; i < summary.gaps.size(); ++i) {
        if (summary.gaps[i].first <= summary.gaps[last].second)
            summary.gaps[last].second = std::max(summary.gaps[last].second, summary.gaps[i].second);
        else
            summary.gaps[++last] = summary.gaps[i];
    }
    if (!summary.gaps.empty()) summary.gaps.resize(last + 1);
}

}  // namespace

RankSummary summarize(const RankRecording& recording) {
    RankSummary summary;
    summary.rank = recording.rank;
    summary.localRank = recording.localRank;
    summary.worldSize = recording.worldSize;
    summary.device = recording.device;
    summary.hostName = recording.hostName;
    summary.bootId = recording.bootId;
    summary.process = recording.process;
    summary.state = recording.state;
    summary.startUnixNs = recording.startUnixNs;
    summary.startUnixAtNs = recording.startUnixAtNs;
    summary.meta = recording.meta;
    summary.streams = recording.streams;
    summary.threads = recording.threads;
    summary.devices = recording.devices;
    summary.busId = recording.busId;
    summary.machineLinks = recording.machineLinks;
    summary.failedAllocations = recording.failedAllocations;
    summary.recorderCalls = recording.recorderCalls;
    summary.recorderGroups = recording.recorderGroups;
    summary.recorderFromStart = recording.recorderFromStart;
    summary.communicators = recording.communicators;
    summary.sources = recording.sources;
    summary.losses = recording.losses;
    if (summary.device < 0 && !recording.kernels.empty()) {
        summary.device = recording.streams[static_cast<size_t>(recording.kernels.front().streamId)].device;
    }

    const auto rows = [](const auto& list) { return static_cast<int64_t>(list.size()); };
    summary.rowCounts = {rows(recording.kernels),          rows(recording.memcpys),
                         rows(recording.memsets),          rows(recording.apiCalls),
                         rows(recording.synchronizations), rows(recording.cudaEvents),
                         rows(recording.allocations),      rows(recording.nvtx),
                         rows(recording.ncclCalls),        rows(recording.proxyOps),
                         rows(recording.kernelSummaries),  rows(recording.kernelSpans),
                         rows(recording.counters)};
    widen(recording.kernels, summary.deviceFirstNs, summary.deviceLastNs);
    widen(recording.memcpys, summary.deviceFirstNs, summary.deviceLastNs);
    widen(recording.memsets, summary.deviceFirstNs, summary.deviceLastNs);
    widen(recording.kernelSpans, summary.deviceFirstNs, summary.deviceLastNs);
    summary.firstNs = summary.deviceFirstNs;
    summary.lastNs = summary.deviceLastNs;
    widen(recording.apiCalls, summary.firstNs, summary.lastNs);
    widen(recording.synchronizations, summary.firstNs, summary.lastNs);
    widen(recording.cudaEvents, summary.firstNs, summary.lastNs);
    widen(recording.allocations, summary.firstNs, summary.lastNs);
    widen(recording.nvtx, summary.firstNs, summary.lastNs);
    widen(recording.ncclCalls, summary.firstNs, summary.lastNs);
    widen(recording.proxyOps, summary.firstNs, summary.lastNs);
    addGaps(recording, summary);
    addCalls(recording, summary);
    addRanges(recording, summary);
    addMarks(recording, summary);
    return summary;
}

}  // namespace rankscope::collector
