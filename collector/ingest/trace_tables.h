// SPDX-License-Identifier: Apache-2.0
// From joined ranks to rows: the last stage before the writer.
#pragma once

#include <array>
#include <vector>

#include "collector/ingest/collective_matching.h"
#include "collector/ingest/step_segmentation.h"
#include "collector/ingest/trace_builder.h"
#include "collector/store/writer.h"

namespace rankscope::collector {

/// What the rows of one rank become in the trace: all that translate() needs to know of the others.
struct RankTranslation {
    ClockFit clock;        ///< of its host
    int64_t originNs = 0;  ///< HostClocks::originNs
    std::array<int64_t, RankSummary::kEventTables> firstIds{};
    std::vector<int32_t> threads, streams;  ///< trace ids by local index
    std::vector<int64_t> communicators;
    std::vector<int32_t> names;  ///< of the texts that forEachName() comes to, by first use; filled for other processes

    int64_t jobNs(int64_t hostNs) const noexcept { return clock.apply(hostNs) - originNs; }
};

/// Times to the job clock, local indices to trace ids; texts stay local.
void translate(const RankTranslation& to, RankRecording& recording);

/// Calls name(id) for each local text id of the events, in the order in which the trace names them.
template <typename Name>
void forEachName(RankRecording& recording, const Name& name) {
    for (store::Kernel& row : recording.kernels) name(row.nameId);
    for (store::KernelSummary& row : recording.kernelSummaries) name(row.nameId);
    for (store::ApiCall& row : recording.apiCalls) name(row.nameId);
    for (store::Allocation& row : recording.allocations) name(row.nameId);
    for (store::Counter& row : recording.counters) name(row.nameId);
    for (store::NvtxRange& row : recording.nvtx) {
        name(row.nameId);
        if (row.domainId) name(*row.domainId);
    }
}

/// Calls table(rows) for each list of events, in the order of RankSummary::kEventTables.
template <typename Table>
void forEachEventTable(RankRecording& recording, const Table& table) {
    table(recording.kernels);
    table(recording.memcpys);
    table(recording.memsets);
    table(recording.apiCalls);
    table(recording.synchronizations);
    table(recording.cudaEvents);
    table(recording.allocations);
    table(recording.nvtx);
    table(recording.ncclCalls);
    table(recording.proxyOps);
    table(recording.kernelSummaries);
    table(recording.kernelSpans);
    table(recording.counters);
}

/// Knows the trace id of everything that ranks name by a local index. Read-only once made: translationOf() may be asked
/// beside the writing.
class TraceTables {
  public:
    explicit TraceTables(const JoinedRanks& ranks);

    /// Hosts, clocks, processes, devices, links, ranks, threads, streams, communicators, sources.
    void writeIdentities(store::TraceWriter& writer, const std::vector<int32_t>& missingRanks) const;
    /// Of processes that are ranks. Wall-clock times become those of the job, but for virtual ones, which have none.
    void writeStacks(store::TraceWriter& writer, const std::vector<ToldStack>& stacks, bool isVirtual) const;
    /// Of the devices of ranks, and of the ports of their hosts; of virtual runs without times.
    void writeHealth(store::TraceWriter& writer, const std::vector<capture::HealthFile>& files, bool isVirtual) const;
    RankTranslation translationOf(size_t summary) const;
    void writeLosses(store::TraceWriter& writer, const std::vector<store::Loss>& ofRun,
                     const std::vector<store::Loss>& ofCollectives, const std::vector<store::Loss>& ofMessages) const;
    void writeMeta(store::TraceWriter& writer, const RunFacts& facts, const std::string& stepSource) const;

  private:
    void nameProcesses();
    void nameDevices();
    void nameThreadsAndStreams();
    void writeCommunicators(store::TraceWriter& writer) const;
    void writeFailedAllocations(store::TraceWriter& writer) const;
    void writeRecorderRows(store::TraceWriter& writer) const;
    int64_t startUnixNs() const;
    std::optional<int64_t> jobNsOfUnix(size_t summary, int64_t unixNs, bool isVirtual) const;
    std::string captureNameOf(size_t summary) const;
    void writePorts(store::TraceWriter& writer, const std::vector<capture::HealthFile>& files, bool isVirtual) const;
    int32_t hostOf(size_t summary) const { return m_ranks.clocks.hostOfSummary[summary]; }

    const JoinedRanks& m_ranks;
    std::vector<store::Process> m_processes;
    std::vector<int64_t> m_processOf;  // by summary
    std::vector<store::Device> m_devices;
    std::vector<store::Thread> m_threads;
    std::vector<store::Stream> m_streams;
    std::vector<std::vector<int32_t>> m_threadIds;  // by summary and local index
    std::vector<std::vector<int32_t>> m_streamIds;
};

/// Gives the texts of a translated recording their ids in the trace.
void nameTexts(store::TraceWriter& writer, RankRecording& recording);
/// Writes its events, whose texts have them.
void writeEventTables(store::TraceWriter& writer, RankRecording& recording);

/// Tells each collective the step in which its lowest rank arrives.
void placeInSteps(const std::vector<store::Step>& steps, MatchedCollectives& matched);

void writeMatches(store::TraceWriter& writer, const MatchedCollectives& collectives, const MatchedMessages& messages,
                  const Segmentation& steps);

}  // namespace rankscope::collector
