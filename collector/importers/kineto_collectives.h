// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/kineto_event.h"
#include "collector/importers/kineto_header.h"
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
    int32_t group = -1;  ///< index into KinetoCollectives' groups

    /// Takes over what is not known yet.
    void completeWith(const TorchCollective& other);
};

/// What one Kineto file tells of the rank's collectives, on kernels, operators and annotations as they come; joined to
/// calls at the end.
class KinetoCollectives {
  public:
    /// A kernel that communicates, the `kernel`-th of the recording. `hasCall`: NCCL's, which is a row of nccl_call;
    /// else another library's.
    void addKernel(const KinetoEvent& event, size_t kernel, bool hasCall);
    /// record_param_comms.
    void addOperator(const KinetoEvent& event, int32_t thread);
    /// "nccl:all_reduce": on a thread, or on a stream where it is projected on the device.
    void addAnnotation(const KinetoEvent& event, const CollectiveAnnotation& told, int32_t place, bool onDevice);

    /// Adds calls and communicators to the recording, whose kernels and calls of CUDA are all there. Call once.
    void finish(const KinetoHeader& header, std::optional<int64_t> rank, RankRecording& recording);

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
        bool hasCall = true;
    };
    /// Where a call was made: an operator or annotation, and the launch of its kernel; each may be missing.
    struct CallPlace {
        const Span* host = nullptr;
        const store::ApiCall* launch = nullptr;
    };

    int32_t groupOf(const KinetoEvent& event);
    TorchCollective toldBy(const KinetoEvent& event);
    void sortSpans();
    std::unordered_map<uint32_t, const store::ApiCall*> launches(const RankRecording& recording) const;
    CallPlace complete(const CommunicationKernel& communication, const store::Kernel& kernel,
                       const store::ApiCall* launch, TorchCollective& told) const;
    void makeCalls(RankRecording& recording);
    void addCall(const CallPlace& place, const TorchCollective& told, size_t kernel, RankRecording& recording) const;
    static void adoptGroupsOfStreams(RankRecording& recording);
    void makeCommunicators(const KinetoHeader& header, std::optional<int64_t> rank, RankRecording& recording) const;
    static LocalCommunicator communicatorOf(TorchGroup group, const KinetoHeader& header, std::optional<int64_t> rank);
    static const Span* innermost(const std::vector<Span>& spans, int32_t place, int64_t timeNs);

    std::vector<TorchGroup> m_groups;
    std::vector<CommunicationKernel> m_communication;
    std::vector<Span> m_operators;       // record_param_comms
    std::vector<Span> m_annotations;     // "nccl:all_reduce" on the host
    std::vector<Span> m_gpuAnnotations;  // the same on the device
    std::unordered_map<int64_t, const Span*> m_operatorById;
};

}  // namespace rankscope::collector
