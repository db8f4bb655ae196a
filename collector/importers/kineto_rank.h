// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/importers/host_operations.h"
#include "collector/importers/import_loss.h"
#include "collector/importers/kineto_event.h"
#include "collector/importers/kineto_header.h"
#include "collector/importers/reader.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// A process group that a collective of this rank ran on, as the trace told it.
struct TorchGroup {
    std::string name;
    std::string description;
    std::vector<int64_t> ranks;  ///< global ranks in the order of the group; empty: not told
    int64_t size = 0;            ///< 0 unknown
};

/// What torch.distributed told about one call, gathered from its kernel, its CPU operator and its annotations.
struct TorchCollective {
    store::Op op = store::Op::unknown;
    store::DataType dataType = store::DataType::unknown;
    std::optional<int64_t> inElements, outElements, groupSize, sequence;
    std::optional<int64_t> peerGlobalRank;
    int32_t group = -1;  ///< index into KinetoRank's groups

    /// Takes over what is not known yet.
    void completeWith(const TorchCollective& other);
};

/// Turns the events of one Kineto file into a RankRecording: rows of device and host events as they come; what joins
/// them (collectives with their kernels, launches and operators) at the end.
class KinetoRank {
  public:
    void add(const KinetoEvent& event);

    /// Joins and hands out the recording, with times still relative to the file's base. Call once, after the last
    /// event. `fallbackRank`: the rank to assume where the header tells none.
    RankRecording finish(const KinetoHeader& header, std::optional<int32_t> fallbackRank, const ReadOptions& options,
                         ImportLosses& losses);

  private:
    /// Time span of a host thread or a device stream that tells about a collective.
    struct Span {
        int32_t place = 0;  // thread or stream
        int64_t startNs = 0;
        int64_t endNs = 0;
        std::optional<int64_t> externalId;
        TorchCollective told;
    };
    struct CommunicationKernel {
        size_t kernel = 0;
        std::optional<int64_t> externalId;
        TorchCollective told;  // by the kernel's own args
        bool hasCall = true;   // an NCCL kernel: a row of nccl_call; false: another library's
    };

    void addKernel(const KinetoEvent& event);
    void addCopy(const KinetoEvent& event);
    void addSet(const KinetoEvent& event);
    void addCall(const KinetoEvent& event);
    void addSynchronization(const KinetoEvent& event);
    void addAnnotation(const KinetoEvent& event);
    void addMetadata(const KinetoEvent& event);
    void addOperation(const KinetoEvent& event);

    int32_t streamOf(const KinetoEvent& event);
    int32_t threadOf(std::optional<int64_t> tid, std::optional<int64_t> pid);
    int32_t groupOf(const KinetoEvent& event);
    TorchCollective toldBy(const KinetoEvent& event);

    void tellPlatform(ImportLosses& losses) const;
    void completeCopies(ImportLosses& losses);
    void makeCalls();
    void adoptGroupsOfStreams();
    void makeCommunicators(const KinetoHeader& header, std::optional<int64_t> rank);
    static LocalCommunicator communicatorOf(TorchGroup group, const KinetoHeader& header, std::optional<int64_t> rank);
    static const Span* innermost(const std::vector<Span>& spans, int32_t place, int64_t timeNs);

    RankRecording m_recording;
    std::vector<TorchGroup> m_groups;
    std::vector<CommunicationKernel> m_communication;
    std::vector<Span> m_operators;       // record_param_comms
    std::vector<Span> m_annotations;     // "nccl:all_reduce" on the host
    std::vector<Span> m_gpuAnnotations;  // the same on the device
    std::vector<int8_t> m_nameKinds;     // by name id: -1 not looked at, 0 compute, 1 NCCL, 2 other communication
    HostOperations m_operations;         // CPU operators and Python functions
    std::unordered_map<uint64_t, int32_t> m_streams;
    std::unordered_map<int64_t, int32_t> m_threads;
    std::unordered_map<int64_t, std::string> m_processNames;
    std::optional<int64_t> m_pid;
    int64_t m_unknownGpuEvents = 0;
    KinetoPlatform m_platform = KinetoPlatform::unknown;
};

}  // namespace rankscope::collector
