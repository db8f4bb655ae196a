// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/worker.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "reference/workloads/check.h"
#include "reference/workloads/kernels.h"
#include "reference/workloads/rendezvous.h"
#include "reference/workloads/work_share.h"

namespace rankscope::reference {

namespace {

// What a training framework's host code spends between device calls.
constexpr int64_t kHostPerKernelNs = 3000;
constexpr int64_t kHostPerStepNs = 50000;
constexpr int64_t kHostPerBatchNs = 30000;  // a data loader whose workers keep up

// How late communication is where late_launch does not say so, in forward passes of a layer or in steps.
constexpr double kLateLayers = 1.5;
constexpr double kLateShareOfStep = 0.15;

constexpr std::chrono::seconds kRendezvousTimeout{120};
constexpr uint64_t kProbeElements = 64;  // at either end: 256 bytes at most, well inside what virtual GPUs move
constexpr double kDeviceShare = 0.85;    // of the free memory; the rest is NCCL's

}  // namespace

NvtxRange::NvtxRange(const std::string& name) {
    nvtxRangePushA(name.c_str());
}
NvtxRange::~NvtxRange() {
    nvtxRangePop();
}

Worker::Worker(const Scenario& scenario, const Identity& identity)
    : m_scenario(scenario), m_identity(identity), m_failures(scenario.faults, identity.rank, m_virtualGpu) {
    const char* data = getenv("RANKSCOPE_VGPU_DATA");
    m_probe = m_virtualGpu.present() && data && strcmp(data, "full") == 0 ? UINT64_MAX : kProbeElements;
    if (!m_virtualGpu.present() && !scenario.faults.virtualOnly.empty())
        throw DeviceError("the fault '" + scenario.faults.virtualOnly.front() +
                          "' can only be planted in virtual GPUs: use rankscope run --virtual");
    m_workShare = workShare(scenario, identity.rank);
    chooseDevice();
    joinJob();
    require(cudaStreamCreateWithFlags(&m_compute, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    require(cudaStreamCreateWithFlags(&m_world.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    m_orderEvent = newEvent();
    m_batchBytes = scenario.model.microBatch * scenario.model.seq * 8;  // token ids
    require(cudaMalloc(reinterpret_cast<void**>(&m_result), sizeof *m_result), "cudaMalloc");
    require(cudaMalloc(reinterpret_cast<void**>(&m_loss), sizeof *m_loss), "cudaMalloc");
    require(cudaMalloc(&m_batch, m_batchBytes), "cudaMalloc");
    require(cudaMallocHost(reinterpret_cast<void**>(&m_hostLoss), sizeof *m_hostLoss), "cudaMallocHost");
    require(cudaMallocHost(&m_hostBatch, m_batchBytes), "cudaMallocHost");
    require(cudaMemsetAsync(m_result, 0, sizeof *m_result, m_compute), "cudaMemsetAsync");
    const int64_t activation = Transformer(scenario.model).activationElements() * dtypeBytes(scenario.model.dtype);
    m_calls.emplace(m_virtualGpu, communicationLagNs());
    m_hostFaults.emplace(scenario, rank(), m_virtualGpu, activation);
}

Worker::~Worker() {
    m_hostFaults.reset();
    m_calls.reset();
    // Errors on the way out have been reported where they happened; the process ends next.
    m_groups.push_back(m_world);
    if (m_secondWorld) ncclCommDestroy(m_secondWorld);
    for (const Group& group : m_groups)
        if (group.comm) ncclCommDestroy(group.comm);
    for (void* buffer : m_buffers) cudaFree(buffer);
    for (uint64_t* table : m_tables) cudaFreeHost(table);
    for (void* buffer : {static_cast<void*>(m_result), static_cast<void*>(m_loss), m_batch}) cudaFree(buffer);
    cudaFreeHost(m_hostLoss);
    cudaFreeHost(m_hostBatch);
    for (cudaEvent_t event : m_events) cudaEventDestroy(event);
    if (m_compute) cudaStreamDestroy(m_compute);
    for (const Group& group : m_groups)
        if (group.stream) cudaStreamDestroy(group.stream);
}

void Worker::chooseDevice() {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices < 1) throw DeviceError("cudaGetDeviceCount: no device");
    m_ranksPerDevice = (m_scenario.cluster.ranksPerNode + devices - 1) / devices;
    require(cudaSetDevice(m_identity.localRank % devices), "cudaSetDevice");
    if (m_virtualGpu.present()) return;
    int processors = 0;
    int threads = 0;
    require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, m_identity.localRank % devices),
            "cudaDeviceGetAttribute");
    require(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, m_identity.localRank % devices),
            "cudaDeviceGetAttribute");
    m_residentBlocks = std::max(1, processors * (threads / static_cast<int>(kThreadsPerBlock)));
}

void Worker::joinJob() {
    Rendezvous rendezvous(m_identity);
    ncclUniqueId own;
    if (rank() == 0) require(ncclGetUniqueId(&own), "ncclGetUniqueId");
    const ncclUniqueId id = rendezvous.exchange(rank() == 0 ? &own : nullptr, kRendezvousTimeout);
    require(ncclCommInitRank(&m_world.comm, m_identity.worldSize, id, rank()), "ncclCommInitRank");
    m_world.size = m_identity.worldSize;
    m_world.rank = rank();
    if (m_scenario.faults.oppositeOrder)
        require(ncclCommSplit(m_world.comm, 0, rank(), &m_secondWorld, nullptr), "ncclCommSplit");
}

void Worker::planMemory(int64_t totalBytes, int64_t largestBytes) {
    if (m_virtualGpu.present()) return;
    size_t freeBytes = 0;
    size_t deviceBytes = 0;
    require(cudaMemGetInfo(&freeBytes, &deviceBytes), "cudaMemGetInfo");
    const double budget = static_cast<double>(freeBytes) * kDeviceShare / m_ranksPerDevice;
    if (static_cast<double>(totalBytes) <= budget) return;
    if (static_cast<double>(largestBytes) > budget)
        throw DeviceError("one buffer of " + std::to_string(largestBytes) +
                          " bytes does not fit into this rank's share of the device, " +
                          std::to_string(static_cast<int64_t>(budget)) + " bytes: use a smaller model");
    m_shared = allocate(largestBytes);
    fprintf(
        stderr,
        "rank %d: the device is too small for separate buffers; they share one, and the arithmetic is not checked\n",
        rank());
}

void* Worker::allocate(int64_t bytes) {
    if (m_shared) return m_shared;
    void* buffer = nullptr;
    require(cudaMalloc(&buffer, static_cast<size_t>(std::max<int64_t>(1, bytes))), "cudaMalloc");
    m_buffers.push_back(buffer);
    return buffer;
}

uint64_t* Worker::allocateTable(size_t length) {
    uint64_t* table = nullptr;
    require(cudaMallocHost(reinterpret_cast<void**>(&table), std::max<size_t>(1, length) * sizeof *table),
            "cudaMallocHost");
    m_tables.push_back(table);
    return table;
}

KernelTask Worker::task(TaskOp op, Dtype dtype, void* data) const {
    KernelTask task{};
    task.op = m_shared ? TaskOp::none : op;
    task.element = dtype == Dtype::bf16 ? Element::bf16 : dtype == Dtype::fp16 ? Element::fp16 : Element::fp32;
    task.data = data;
    task.result = m_result;
    task.probe = m_probe;
    task.rank = static_cast<uint32_t>(rank());
    task.ranks = static_cast<uint32_t>(m_identity.worldSize);
    task.step = static_cast<uint32_t>(m_step);
    task.microSteps = 1;
    task.microLast = 1;
    task.layers = static_cast<uint32_t>(m_scenario.model.layers);
    return task;
}

double Worker::healthyNs(const KernelCost& cost) const {
    return std::max(cost.flop / (m_scenario.cluster.tflops * 1e3), cost.bytes / m_scenario.cluster.hbmGbps);
}

int64_t Worker::communicationLagNs() const {
    const auto& late = m_scenario.faults.lateLaunch;
    if (!late) return 0;
    if (late->ms) return std::llround(*late->ms * 1e6);
    double layerNs = 0;
    for (const LayerKernel& kernel : Transformer(m_scenario.model).forward()) layerNs += healthyNs(kernel.cost);
    // Sharded layers are gathered under the layer before them; gradients, which only the end of backward waits for,
    // under much more.
    const bool sharded = m_scenario.kind == Kind::fsdp || m_scenario.kind == Kind::hsdp;
    const double layers =
        sharded ? kLateLayers : kLateShareOfStep * 3 * m_scenario.model.layers * m_scenario.parallel.accumulate;
    return std::llround(layers * layerNs);
}

double Straggler::factorIn(int step) const {
    const int steps = std::clamp(step + 1 - fromStep, 0, overSteps);
    return 1 + (factor - 1) * steps / overSteps;
}

double Worker::slowdown(Kernel kernel) const {
    double factor = 1;
    for (const Straggler& straggler : m_scenario.faults.stragglers) {
        // Virtual GPUs plant those of the whole run themselves: they have the device's clocks, too.
        if (m_virtualGpu.present() && straggler.fromStep == 0) continue;
        if (straggler.rank == rank()) factor *= straggler.factorIn(m_step);
    }
    for (const SlowKernel& slow : m_scenario.faults.slowKernels)
        if (slow.rank.value_or(rank()) == rank() && m_step >= slow.fromStep &&
            kKernelNames[static_cast<size_t>(kernel)].starts_with(slow.kernel))
            factor *= slow.factor;
    return factor;
}

double Worker::spinNsPerBlock(const LayerKernel& kernel) const {
    if (m_virtualGpu.present()) return 0;
    const double waves = static_cast<double>((kernel.blocks + m_residentBlocks - 1) / m_residentBlocks);
    return slowdown(kernel.kernel) * healthyNs(kernel.cost) / waves;
}

LayerKernel Worker::withShareOfWork(const LayerKernel& kernel) const {
    // Parameters, and what is done with them, are as many as ever: only the data differ.
    if (kernel.kernel == Kernel::adamStep || kernel.kernel == Kernel::castParameters ||
        kernel.kernel == Kernel::accumulateGradient)
        return kernel;
    LayerKernel shared = kernel;
    shared.cost.flop *= m_workShare;
    shared.cost.bytes *= m_workShare;
    shared.blocks = std::max<int64_t>(1, std::llround(static_cast<double>(kernel.blocks) * m_workShare));
    return shared;
}

void Worker::launch(const LayerKernel& planned, const KernelTask& task) {
    m_hostFaults->beforeLaunch(m_compute);
    const LayerKernel kernel = withShareOfWork(planned);
    const int pieces = m_hostFaults->pieces(healthyNs(kernel.cost));
    pieces > 1 ? launchPieces(kernel, task, pieces) : launchOne(kernel, task);
}

void Worker::launchPieces(const LayerKernel& kernel, const KernelTask& planned, int pieces) {
    const LayerKernel piece{kernel.kernel,
                            {kernel.cost.flop / pieces, kernel.cost.bytes / pieces},
                            std::max<int64_t>(1, kernel.blocks / pieces),
                            0};
    const KernelTask nothing = task(TaskOp::none, Dtype::bf16, nullptr);
    for (int i = 1; i <= pieces; ++i) {
        m_virtualGpu.hostWork(m_hostFaults->pieceDelayNs());
        launchOne(piece, i < pieces ? nothing : planned);
    }
}

void Worker::launchOne(const LayerKernel& kernel, const KernelTask& planned) {
    KernelTask task = planned;
    task.spinNsPerBlock = spinNsPerBlock(kernel);
    const bool checks = task.op == TaskOp::checkGradient || task.op == TaskOp::checkParameter ||
                        task.op == TaskOp::checkActivation || task.op == TaskOp::checkBackward;
    if (checks) visitProbes(task, 0, 1, [this](uint64_t) { ++m_expectedChecks; });
    m_virtualGpu.hostWork(kHostPerKernelNs);
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(kernel.blocks, INT32_MAX));
    KernelCost cost = kernel.cost;
    if (m_virtualGpu.present()) {
        const double factor = slowdown(kernel.kernel);
        cost.flop *= factor;
        cost.bytes *= factor;
    }
    require(launchKernel(kernel.kernel, m_scenario.model.dtype, blocks, m_compute, cost, task), "kernel launch");
}

void Worker::launch(const LayerKernel& kernel) {
    launch(kernel, task(TaskOp::none, Dtype::bf16, nullptr));
}

void Worker::order(cudaStream_t earlier, cudaStream_t later) {
    // A wait refers to the record that came before it, so one event serves every pair.
    require(cudaEventRecord(m_orderEvent, earlier), "cudaEventRecord");
    require(cudaStreamWaitEvent(later, m_orderEvent, 0), "cudaStreamWaitEvent");
}

cudaEvent_t Worker::newEvent() {
    cudaEvent_t event = nullptr;
    require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    m_events.push_back(event);
    return event;
}

void Worker::beginStep(int step) {
    m_step = step;
    m_lossLaunched = false;
    m_hostFaults->beginStep(step);
    m_virtualGpu.hostWork(kHostPerStepNs);
    fetchBatch();
    require(cudaMemcpyAsync(m_batch, m_hostBatch, static_cast<size_t>(m_batchBytes), cudaMemcpyHostToDevice, m_compute),
            "cudaMemcpyAsync");
}

void Worker::fetchBatch() const {
    // The range that torch's profiler puts around a data loader without worker processes
    // (torch/utils/data/dataloader.py).
    const NvtxRange range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    m_failures.load(m_step);
    m_virtualGpu.hostWork(kHostPerBatchNs + m_hostFaults->inputDelayNs());
}

void Worker::launchLoss(const LayerKernel& kernel) {
    launch(kernel, task(TaskOp::writeLoss, Dtype::fp32, m_loss));
    m_lossLaunched = true;
}

void Worker::endStep() {
    m_calls->issueAll();
    if (m_lossLaunched)
        require(cudaMemcpyAsync(m_hostLoss, m_loss, sizeof *m_hostLoss, cudaMemcpyDeviceToHost, m_compute),
                "cudaMemcpyAsync");
    m_failures.waitFor(m_compute, m_step);
    if (m_lossLaunched && !m_shared && *m_hostLoss != static_cast<float>(m_step + 1)) m_lossWrong = true;
}

int Worker::train(const std::function<void()>& step) {
    for (int i = 0; i < m_scenario.steps; ++i) {
        const NvtxRange range("ProfilerStep#" + std::to_string(i));
        beginStep(i);
        step();
        endStep();
    }
    return finish();
}

int Worker::finish() {
    TaskResult result{};
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    require(cudaMemcpy(&result, m_result, sizeof result, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (rank() == 0)
        printf("%s: %d ranks, %d steps, checksum %016llx\n", kindName(m_scenario.kind), m_identity.worldSize,
               m_scenario.steps, result.checksum);
    if (result.mismatches || m_lossWrong || result.checks != m_expectedChecks) {
        fprintf(stderr, "rank %d: wrong results: %llu of %" PRIu64 " values compared, %llu differ%s\n", rank(),
                result.checks, m_expectedChecks, result.mismatches,
                m_lossWrong ? ", and a loss read back is not the one written" : "");
        return 1;
    }
    return 0;
}

}  // namespace rankscope::reference
