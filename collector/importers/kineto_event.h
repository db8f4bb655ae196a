// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope::collector {

/// What an event of a Kineto trace is, from its "cat" (and "ph"); names differ between PyTorch versions and vendors.
enum class KinetoCategory : uint8_t {
    other,  ///< flows, counters: not needed
    kernel,
    memcpy,
    memset,
    runtimeCall,  ///< CUDA or HIP runtime
    driverCall,
    synchronization,  ///< cuda_sync: a wait on the device's side
    annotation,       ///< record_function, profiler steps, torch.distributed's "nccl:all_reduce"
    gpuAnnotation,    ///< the same, projected on the device
    commParameters,   ///< CPU operator record_param_comms: what a collective was called with
    operation,        ///< any other CPU operator
    pythonFunction,
    memory,      ///< an instant "[memory]": what PyTorch's allocators hold (profile_memory=True)
    metadata,    ///< names of processes and threads
    unknownGpu,  ///< a device event of a category this version does not know
};

/// Whose device and runtime an event is of, where its category or its name tells it.
enum class KinetoPlatform : uint8_t { unknown, amd, intel, mtia, other };

/// One event, decoded. Texts point into the parser's buffers and live until the next event. Times are relative to the
/// file's baseTimeNanoseconds.
struct KinetoEvent {
    KinetoCategory category = KinetoCategory::other;
    KinetoPlatform platform = KinetoPlatform::unknown;
    char phase = 0;
    bool hasTime = false;
    bool badNumber = false;  ///< a time or duration was no number, or does not fit: the event is unusable
    std::string_view name;
    int64_t startNs = 0;
    int64_t durNs = 0;
    std::optional<int64_t> pid;  ///< on device events: the device
    std::optional<int64_t> tid;  ///< on device events: the stream
    std::string_view label;      ///< in front of the process' number, in files merged from several ranks: "R0"

    std::optional<int64_t> correlation;
    std::optional<int64_t> externalId;
    std::optional<int64_t> device;
    std::optional<int64_t> context;
    std::optional<int64_t> stream;
    std::optional<int64_t> bytes;
    std::optional<int64_t> gridBlocks;
    std::optional<int64_t> blockThreads;
    std::optional<int64_t> graphNode;
    std::optional<int64_t> eventId;
    std::optional<int64_t> deviceType;      ///< of memory: c10::DeviceType, 0 CPU, 1 CUDA
    std::optional<int64_t> totalAllocated;  ///< bytes that tensors have then
    std::optional<int64_t> totalReserved;   ///< bytes that the allocator has then
    std::string_view copyKind;              ///< "HtoD" (ROCm); CUDA tells it in the name
    std::string_view syncKind;              ///< "Stream Sync"
    std::string_view argsName;              ///< args.name or args.labels of metadata
    std::string_view inputDims;             ///< raw JSON of "Input Dims"
    std::string_view inputType;             ///< raw JSON of "Input type"

    // What torch.distributed says about a collective; on the kernel, on record_param_comms, or on both.
    std::string_view collective;  ///< "allreduce"; empty: not told
    std::string_view dataType;    ///< "Float", "BFloat16"
    std::string_view groupName;
    std::string_view groupDescription;
    std::string_view groupRanks;  ///< "[0, 1, 2]", may be abbreviated with "..."
    std::optional<int64_t> inElements;
    std::optional<int64_t> outElements;
    std::optional<int64_t> groupSize;
    std::optional<int64_t> sourceRank;
    std::optional<int64_t> destinationRank;
    std::optional<int64_t> groupStart;   ///< "Global rank start"
    std::optional<int64_t> groupStride;  ///< "Global rank stride"
    std::optional<int64_t> sequence;     ///< "Seq" of newer PyTorch
};

}  // namespace rankscope::collector
