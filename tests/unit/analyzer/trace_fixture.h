// SPDX-License-Identifier: Apache-2.0
// Builds a small trace.db in sight: ranks, kernels, collectives, sends and steps in any order; ids and waits are worked
// out when it is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analyzer/report/report_model.h"
#include "collector/store/event_model.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::store {
class TraceWriter;
}

namespace rankscope::test {

/// Removes itself.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return m_path; }

  private:
    std::filesystem::path m_path;
};

enum class Lane { compute, communication };

class TraceFixture {
  public:
    /// Ranks 0 … count-1, ranksPerHost on each host.
    TraceFixture(int ranks, int ranksPerHost);

    TraceFixture& links(const std::string& text);
    TraceFixture& clockBound(int64_t boundNs);
    /// A recorded environment variable of the job; `fromShell`: it stood in the environment of `rankscope run` as well.
    TraceFixture& environment(const std::string& name, const std::string& value, bool fromShell = true);
    /// What the collectives from here on carry, and how (as the profiler plugin tells).
    TraceFixture& dataType(store::DataType type);
    TraceFixture& choice(store::Algorithm algorithm, store::Protocol protocol);
    /// From here on member i leaves a collective this much before the last one.
    TraceFixture& leavesEarly(std::vector<int64_t> byNs);
    /// Host time of the calls of the collectives from here on; without it they are called when their kernels start.
    TraceFixture& calledAt(int64_t ns);
    /// The communication lane waits, by a host call at waitedNs, for what the compute lane had been given at
    /// recordedNs.
    void streamWait(int rank, int64_t recordedNs, int64_t waitedNs);
    void kernel(int rank, int64_t startNs, int64_t durNs, const std::string& name, int64_t grid);
    void copy(int rank, int64_t startNs, int64_t durNs);
    /// A kernel on the compute lane with the host call that launched it.
    void launchedKernel(int rank, int64_t startNs, int64_t durNs, const std::string& name, int64_t grid,
                        int64_t launchNs, int64_t launchDurNs);
    /// A copy from host to device, from pageable or pinned memory, with its host call.
    void hostCopy(int rank, int64_t startNs, int64_t durNs, int64_t bytes, bool pageable, int64_t callNs,
                  int64_t callDurNs);
    /// A host call that puts nothing on the device.
    void call(int rank, int64_t startNs, int64_t durNs, const std::string& name, store::ApiKind kind);
    /// A range on the host thread.
    void range(int rank, int64_t startNs, int64_t durNs, const std::string& name);
    /// A communicator; returns its handle.
    int communicator(std::vector<int> ranks);
    /// A collective that members enter at `arrivals` (by member) and all leave at last arrival + transferNs. Returns
    /// its end.
    int64_t collective(int communicator, store::Op op, int64_t bytes, const std::vector<int64_t>& arrivals,
                       int64_t transferNs, Lane lane = Lane::communication);
    /// A message: both kernels end at the later arrival + transferNs. Returns that.
    int64_t message(int communicator, int src, int dst, int64_t bytes, int64_t sendArrivalNs, int64_t recvArrivalNs,
                    int64_t transferNs);
    void step(int rank, int number, int64_t startNs, int64_t durNs, bool warmUp = false);
    void loss(const std::string& kind, store::Severity severity, int rank);

    int ranks() const { return m_ranks; }
    void write(const std::filesystem::path& file) const;
    /// Writes and analyses.
    report::Report analyze() const;

  private:
    struct KernelRow {
        int rank;
        Lane lane;
        int64_t startNs, durNs;
        std::string name;
        int64_t grid;
        bool nccl;
        size_t key;  // order of declaration: how calls find their kernel
        uint32_t correlation = 0;
    };
    struct HostCallRow {
        int rank;
        int64_t startNs, durNs;
        std::string name;
        store::ApiKind kind;
        uint32_t correlation;  // 0: none
    };
    struct RangeRow {
        int rank;
        int64_t startNs, durNs;
        std::string name;
    };
    void writeHostEvents(store::TraceWriter& out) const;
    struct CallRow {
        int rank, communicator;
        store::Op op;
        int64_t bytes, seq;
        size_t kernelKey;
        store::DataType dataType;
        int64_t calledNs = -1;
    };
    struct StreamWaitRow {
        int rank;
        uint32_t recordCorrelation, waitCorrelation;
        int64_t recordedNs, waitedNs;
    };
    int64_t callStart(const CallRow& call) const {
        return call.calledNs >= 0 ? call.calledNs : m_kernels[call.kernelKey].startNs;
    }
    void writeStreamWaits(store::TraceWriter& out) const;
    struct CollectiveRow {
        int communicator;
        store::Op op;
        int64_t bytes, seq, lastArrivalNs, endNs, transferNs;
        std::vector<int64_t> arrivals;
        std::vector<size_t> calls;
        store::Algorithm algorithm = store::Algorithm::unknown;
        store::Protocol protocol = store::Protocol::unknown;
        std::vector<int64_t> early;
    };
    struct MessageRow {
        int communicator, src, dst;
        int64_t bytes, sendNs, recvNs, endNs;
        size_t sendCall, recvCall;
    };
    size_t addKernel(int rank, Lane lane, int64_t startNs, int64_t durNs, const std::string& name, int64_t grid,
                     bool nccl);

    int m_ranks, m_ranksPerHost;
    std::string m_links;
    int64_t m_clockBoundNs = 0;
    std::map<std::string, std::string> m_environment, m_shell;
    store::DataType m_dataType = store::DataType::bf16;
    store::Algorithm m_algorithm = store::Algorithm::unknown;
    store::Protocol m_protocol = store::Protocol::unknown;
    std::vector<int64_t> m_early;
    int64_t m_calledNs = -1;
    std::vector<KernelRow> m_kernels;
    std::vector<store::Memcpy> m_copies;
    std::vector<CallRow> m_calls;
    std::vector<CollectiveRow> m_collectives;
    std::vector<MessageRow> m_messages;
    std::vector<std::vector<int>> m_communicators;
    std::vector<HostCallRow> m_hostCalls;
    std::vector<RangeRow> m_ranges;
    std::vector<StreamWaitRow> m_streamWaits;
    uint32_t m_correlations = 0;
    std::vector<store::Step> m_steps;
    std::vector<store::Loss> m_losses;
};

}  // namespace rankscope::test
