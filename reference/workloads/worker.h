// SPDX-License-Identifier: Apache-2.0
// One rank of a running workload: its device, streams, communicator and memory, and what every training step has in
// common.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/workloads/host_faults.h"
#include "reference/workloads/identity.h"
#include "reference/workloads/kernel_task.h"
#include "reference/workloads/late_calls.h"
#include "reference/workloads/layout.h"
#include "reference/workloads/planted_failures.h"
#include "reference/workloads/scenario.h"
#include "reference/workloads/transformer.h"
#include "reference/workloads/virtual_gpu.h"

namespace rankscope::reference {

/// An NVTX range on the calling thread.
class NvtxRange {
  public:
    explicit NvtxRange(const std::string& name);
    ~NvtxRange();
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
};

/// Ranks that communicate with each other, on a stream of their own, as a torch process group does. A rank that is
/// alone in a group other than the world has neither communicator nor stream.
struct Group {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    int size = 1;
    int rank = 0;  ///< of this process in the group
    bool alone() const { return size == 1; }
};

/// One half of a point-to-point exchange.
struct Message {
    enum class Type { send, receive } type;
    void* data;
    int64_t elements;
    int peer;  ///< rank in the group
};

/// What every kind of job is made of. Faults of hosts and ranks are planted here, once for all kinds.
class Worker {
  public:
    /// Joins the job: device, streams, world communicator. Blocks until every rank has come.
    Worker(const Scenario& scenario, const Identity& identity);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    const Scenario& scenario() const { return m_scenario; }
    int rank() const { return m_identity.rank; }
    cudaStream_t compute() const { return m_compute; }
    const Group& world() const { return m_world; }
    /// The group of the ranks with the same colour. Every rank of the job must call it, in the same order of calls.
    /// Lives as long as the worker.
    Group join(const RankSet& ranks);

    /// Called once before allocate(). Where a real device is smaller than `totalBytes`, all buffers share one of
    /// `largestBytes`, and the arithmetic is not checked: the timing is that of the declared sizes all the same.
    void planMemory(int64_t totalBytes, int64_t largestBytes);
    void* allocate(int64_t bytes);
    /// A list that host and device read.
    uint64_t* allocateTable(size_t length);
    /// `bytes` into a buffer; its beginning where all buffers are one.
    void* at(void* buffer, int64_t bytes) const { return m_shared ? m_shared : static_cast<char*>(buffer) + bytes; }

    /// A task with everything filled in that does not depend on the tensor; TaskOp::none when buffers are shared.
    KernelTask task(TaskOp op, Dtype dtype, void* data) const;
    /// Launches on the compute stream, after the host time that a framework spends per operation.
    void launch(const LayerKernel& kernel, const KernelTask& task);
    void launch(const LayerKernel& kernel);

    // Collectives go to the group's stream; sizes are in elements. A group of one sends nothing: at most it copies from
    // one buffer to the other.
    void allReduce(const Group& group, void* data, int64_t elements, Dtype dtype);
    void allGather(const Group& group, const void* part, void* whole, int64_t elementsPerRank, Dtype dtype);
    void reduceScatter(const Group& group, const void* whole, void* part, int64_t elementsPerRank, Dtype dtype);
    /// All messages in one NCCL group call, in this order; what a rank sends to itself is copied.
    void exchange(const Group& group, const std::vector<Message>& messages, Dtype dtype);
    /// What the group does from now on starts after the compute stream's work until now, and the other way round.
    void startAfterCompute(const Group& group);
    void computeAfter(const Group& group);
    /// The group's stream waits for an event, or for the stream of another group; `event` marks where the group's
    /// stream is now.
    void startAfter(const Group& group, cudaEvent_t event);
    void startAfter(const Group& group, const Group& earlier);
    void record(const Group& group, cudaEvent_t event);
    /// The compute stream waits for an event of a group's stream.
    void computeAfter(cudaEvent_t recorded);
    cudaEvent_t newEvent();

    /// Launches the loss kernel; its result is read back at the end of the step.
    void launchLoss(const LayerKernel& kernel);
    /// All steps, each with its batch before and its loss after what `step` does; then waits for the device and
    /// compares the checks. Returns the exit status; rank 0 prints the result on stdout.
    int train(const std::function<void()>& step);
    /// Fails here when the scenario says that this rank fails in this step.
    void failIfPlanned();
    int step() const { return m_step; }

  private:
    /// Fetches the next batch and copies it to the device.
    void beginStep(int step);
    void endStep();
    int finish();
    /// What is issued on `later` from now on starts after what was issued on `earlier` until now.
    void order(cudaStream_t earlier, cudaStream_t later);
    int64_t communicationLagNs() const;
    void chooseDevice();
    void joinJob();
    double healthyNs(const KernelCost& cost) const;
    /// How many times slower this rank is for the same work in this step, as far as the workload has to plant it.
    double slowdown(Kernel kernel) const;
    double spinNsPerBlock(const LayerKernel& kernel) const;
    /// Host time of a framework around one collective.
    void beforeCollective() const;
    /// Collectives beside those of the job, of which a planted rank disagrees with the others.
    void addContradiction();
    void issue(const Group& group, const Collective& collective);
    void copy(const Group& group, const void* from, void* to, int64_t bytes);
    void copyToItself(const Group& group, const std::vector<Message>& messages, Dtype dtype);
    void fetchBatch() const;
    LayerKernel withShareOfWork(const LayerKernel& kernel) const;
    void launchOne(const LayerKernel& kernel, const KernelTask& planned);
    void launchPieces(const LayerKernel& kernel, const KernelTask& task, int pieces);

    const Scenario& m_scenario;
    const Identity& m_identity;
    VirtualGpu m_virtualGpu;
    std::optional<HostFaults> m_hostFaults;
    PlantedFailures m_failures;
    std::optional<LateCalls> m_calls;  ///< of communication
    int m_ranksPerDevice = 1;
    int m_residentBlocks = 1;
    double m_workShare = 1;  ///< of the usual work
    cudaStream_t m_compute = nullptr;
    Group m_world;
    ncclComm_t m_secondWorld = nullptr;  ///< where two communicators are to be taken in opposite orders
    std::vector<Group> m_groups;         ///< the others
    std::vector<cudaEvent_t> m_events;
    cudaEvent_t m_orderEvent = nullptr;
    std::vector<void*> m_buffers;
    std::vector<uint64_t*> m_tables;
    void* m_shared = nullptr;  ///< the one buffer of a device too small for all
    TaskResult* m_result = nullptr;
    float* m_loss = nullptr;
    float* m_hostLoss = nullptr;
    void* m_batch = nullptr;
    void* m_hostBatch = nullptr;
    int64_t m_batchBytes = 0;
    uint64_t m_expectedChecks = 0;
    uint64_t m_probe = 0;
    int m_step = -1;
    int m_contradictedStep = -1;  ///< the last in which contradictions were looked for
    bool m_lossLaunched = false;
    bool m_lossWrong = false;
};

}  // namespace rankscope::reference
