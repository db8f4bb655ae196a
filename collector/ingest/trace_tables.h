// SPDX-License-Identifier: Apache-2.0
// From joined ranks to rows: the last stage before the writer.
#pragma once

#include <vector>

#include "collector/ingest/collective_matching.h"
#include "collector/ingest/step_segmentation.h"
#include "collector/ingest/trace_builder.h"
#include "collector/store/writer.h"

namespace rankscope::collector {

/// Knows the trace id of everything that ranks name by a local index. Read-only once made: translate() may run beside
/// the writing.
class TraceTables {
  public:
    explicit TraceTables(const JoinedRanks& ranks);

    /// Hosts, clocks, processes, devices, links, ranks, threads, streams, communicators, sources.
    void writeIdentities(store::TraceWriter& writer, const std::vector<int32_t>& missingRanks) const;
    /// Of processes that are ranks. Wall-clock times become those of the job, but for virtual ones, which have none.
    void writeStacks(store::TraceWriter& writer, const std::vector<ToldStack>& stacks, bool isVirtual) const;
    /// Of the devices of ranks, and of the ports of their hosts; of virtual runs without times.
    void writeHealth(store::TraceWriter& writer, const std::vector<capture::HealthFile>& files, bool isVirtual) const;
    /// Times to the job clock, local indices to trace ids; texts stay local until writeRecording().
    void translate(size_t summary, RankRecording& recording) const;
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

/// Writes a translated recording, naming its texts on the way.
void writeRecording(store::TraceWriter& writer, RankRecording& recording);

/// Tells each collective the step in which its lowest rank arrives.
void placeInSteps(const std::vector<store::Step>& steps, MatchedCollectives& matched);

void writeMatches(store::TraceWriter& writer, const MatchedCollectives& collectives, const MatchedMessages& messages,
                  const Segmentation& steps);

}  // namespace rankscope::collector
