// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/host_operations.h"
#include "collector/importers/import_loss.h"
#include "collector/importers/nsys_nccl.h"
#include "collector/importers/reader.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// What rows of device work have in common.
struct DeviceRow {
    int64_t startNs = 0;
    int64_t durNs = 0;
    int64_t context = 0;
    int64_t stream = 0;
    std::optional<int64_t> correlation;
};

/// Turns the rows of one process on one device into a RankRecording: those of the device and the host as they come;
/// NCCL's calls with their kernels at the end.
class DeviceRank {
  public:
    /// Names of kernels and calls are ids; asked once each.
    using NameOf = std::function<std::string_view(int64_t id)>;
    DeviceRank(NameOf nameOf, int64_t device) : m_nameOf(std::move(nameOf)), m_device(device) {}

    /// `told`: what a kernel does among devices, where the file tells it beside the name.
    void addKernel(const DeviceRow& row, int64_t nameId, store::Kernel rest, store::Op told = store::Op::unknown);
    /// What runs on the device under a name that no text of the database is.
    void addNamedKernel(const DeviceRow& row, std::string_view name, store::Kernel rest);
    void addCopy(const DeviceRow& row, store::Memcpy rest);
    void addSet(const DeviceRow& row, int64_t bytes);
    void addEvent(const DeviceRow& row, int64_t eventId);
    void addWait(const DeviceRow& row, bool onStream, store::Synchronization rest);
    void addCall(int64_t tid, int64_t nameId, store::ApiCall rest);
    /// A range of any domain but NCCL's.
    void addRange(int64_t tid, std::string_view text, std::string_view domain, store::NvtxRange rest);
    /// What the host did, of a framework's own; it is kept where it tells why the device stood idle.
    void addOperation(int64_t tid, std::string_view name, int64_t startNs, int64_t durNs, bool isPython);
    /// A range of NCCL's; its thread is set here.
    void addNccl(int64_t tid, NcclRange range);
    /// A sample of a value that the device has.
    void addCounter(int64_t timeNs, std::string_view name, int64_t value);
    void nameThread(int64_t tid, std::string_view name);
    /// True of a thread that a call was made on.
    bool hasThread(int64_t tid) const { return m_threads.contains(tid); }

    int64_t device() const { return m_device; }
    RankRecording& recording() { return m_recording; }
    uint64_t rows() const { return m_rows; }
    bool communicates() const { return !m_communication.empty(); }
    /// Sum of the durations of its kernels so far.
    double kernelNs() const { return m_kernelNs; }

    /// Joins and hands out. Call once, after the last row. `otherDevices`: the process computes on others, too, so that
    /// NCCL's calls are not of this one alone.
    FileRank finish(bool otherDevices, const ReadOptions& options);

  private:
    struct Annotation {
        int32_t thread = 0;
        int64_t startNs = 0;
        int64_t endNs = 0;
        CollectiveAnnotation told;
    };
    /// A communication kernel and the call that launched it.
    struct Launched {
        size_t kernel = 0;
        const store::ApiCall* launch = nullptr;  // of m_recording.apiCalls; none where it was not recorded
    };

    /// Sets stream, times and correlation of a kernel, a copy or a set.
    template <typename Row>
    void place(const DeviceRow& row, Row& placed);
    void addKernelRow(const DeviceRow& row, store::Kernel rest, store::Op told);
    int32_t streamOf(int64_t context, int64_t stream);
    int32_t threadOf(int64_t tid);
    std::vector<Launched> launchedKernels() const;
    void makeCalls(bool otherDevices);
    void learnStreams(const NcclBatch& batch, std::span<const Launched> kernels);
    std::map<uint64_t, std::vector<Launched>> kernelsByCommunicator(const std::vector<NcclRange>& operations,
                                                                    std::span<const Launched> kernels) const;
    void addCallsOf(const NcclBatch& batch, std::span<const Launched> kernels, bool otherDevices);
    void addCallByKernel(const Launched& kernel, store::Op op);
    store::NcclCall callOf(const Launched& kernel) const;
    int64_t communicatorOf(int64_t hash);
    void tellRank(RankHeader& header) const;

    NameOf m_nameOf;
    int64_t m_device;
    RankRecording m_recording;
    std::unordered_map<int64_t, int32_t> m_names;    // by nameId
    std::vector<bool> m_isNccl;                      // by local name, of those of kernels
    std::unordered_map<int64_t, int32_t> m_threads;  // by tid
    std::unordered_map<uint64_t, int32_t> m_streams;
    std::vector<size_t> m_communication;           // kernels of NCCL, and those told to communicate
    std::unordered_map<size_t, store::Op> m_told;  // by kernel
    std::vector<NcclRange> m_ranges;
    std::vector<Annotation> m_annotations;  // "nccl:all_reduce", PyTorch's
    HostOperations m_operations;
    std::unordered_map<int64_t, int64_t> m_communicators;  // by hash
    /// Hash of the communicator whose kernels run on a stream; empty where several share it.
    std::unordered_map<int32_t, std::optional<uint64_t>> m_communicatorOn;
    ImportLosses m_losses;
    uint64_t m_rows = 0;
    double m_kernelNs = 0;
};

}  // namespace rankscope::collector
