// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/host_faults.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "reference/workloads/check.h"

namespace rankscope::reference {

namespace {

constexpr double kPieceNs = 2000;  // about the shortest that a kernel lasts on current devices

int64_t nanoseconds(double milliseconds) {
    return std::llround(milliseconds * 1e6);
}

}  // namespace

HostFaults::HostFaults(const Scenario& scenario, int rank, const VirtualGpu& virtualGpu, int64_t blockBytes)
    : m_faults(scenario.faults),
      m_virtualGpu(virtualGpu),
      m_rank(rank),
      m_jitter(scenario),
      m_synchronisations(m_faults.syncEveryStep ? m_faults.syncEveryStep->perStep : 0),
      m_allocations(m_faults.allocChurn ? m_faults.allocChurn->perStep : 0),
      m_copies(m_faults.pageableCopies ? m_faults.pageableCopies->perStep : 0),
      m_blockBytes(blockBytes) {
    if (m_faults.syncEveryStep) {
        require(cudaMalloc(reinterpret_cast<void**>(&m_value), sizeof *m_value), "cudaMalloc");
        require(cudaMemset(m_value, 0, sizeof *m_value), "cudaMemset");
    }
    if (m_faults.allocChurn) require(cudaMalloc(&m_block, static_cast<size_t>(m_blockBytes)), "cudaMalloc");
    if (m_faults.pageableCopies) {
        m_copyBytes = std::max<int64_t>(
            1, std::llround(m_faults.pageableCopies->mb * 1024 * 1024 / m_faults.pageableCopies->perStep));
        m_offloaded = calloc(1, static_cast<size_t>(m_copyBytes));
        if (!m_offloaded) throw std::bad_alloc();
        require(cudaMalloc(&m_onDevice, static_cast<size_t>(m_copyBytes)), "cudaMalloc");
    }
}

HostFaults::~HostFaults() {
    for (void* memory : {m_block, static_cast<void*>(m_value), m_onDevice})
        if (memory) cudaFree(memory);
    free(m_offloaded);
}

void HostFaults::beginStep(int step) {
    m_step = step;
    m_launch = 0;
    m_piecesLeft = m_faults.launchBound ? m_faults.launchBound->kernels : 0;
    for (LaunchSpread* spread : {&m_synchronisations, &m_allocations, &m_copies}) spread->beginStep();
}

int64_t HostFaults::inputDelayNs() const {
    return m_faults.slowInput ? nanoseconds(m_faults.slowInput->ms) : 0;
}

void HostFaults::beforeLaunch(cudaStream_t compute) {
    if (m_jitter.rankIn(m_step) == m_rank && m_jitter.launchIn(m_step) == m_launch)
        m_virtualGpu.hostWork(nanoseconds(m_faults.jitter->ms));
    ++m_launch;
    for (int i = m_synchronisations.beforeLaunch(); i > 0; --i) readValueBack(compute);
    for (int i = m_allocations.beforeLaunch(); i > 0; --i) churn();
    for (int i = m_copies.beforeLaunch(); i > 0; --i) copyFromPageable(compute);
}

void HostFaults::readValueBack(cudaStream_t compute) {
    // As torch's item() does it (ATen/native/cuda/CUDAScalar.cu).
    float value = 0;
    require(cudaMemcpyAsync(&value, m_value, sizeof value, cudaMemcpyDeviceToHost, compute), "cudaMemcpyAsync");
    require(cudaStreamSynchronize(compute), "cudaStreamSynchronize");
    m_virtualGpu.hostWork(nanoseconds(m_faults.syncEveryStep->hostMs));
}

void HostFaults::churn() {
    // As a caching allocator does it that runs out of memory: blocks go back to the driver, which waits for the device,
    // then one is asked for.
    require(cudaFree(m_block), "cudaFree");
    m_block = nullptr;
    require(cudaMalloc(&m_block, static_cast<size_t>(m_blockBytes)), "cudaMalloc");
}

void HostFaults::copyFromPageable(cudaStream_t compute) {
    // As torch's to(device) does it without non_blocking (ATen/native/cuda/Copy.cu).
    require(cudaMemcpyAsync(m_onDevice, m_offloaded, static_cast<size_t>(m_copyBytes), cudaMemcpyHostToDevice, compute),
            "cudaMemcpyAsync");
    require(cudaStreamSynchronize(compute), "cudaStreamSynchronize");
}

int HostFaults::pieces(double ns) {
    if (m_piecesLeft <= 0) return 1;
    const int pieces = std::clamp(static_cast<int>(ns / kPieceNs), 1, m_piecesLeft);
    m_piecesLeft -= pieces;
    return pieces;
}

int64_t HostFaults::pieceDelayNs() const {
    return m_faults.launchBound ? std::llround(m_faults.launchBound->hostUs * 1e3) : 0;
}

}  // namespace rankscope::reference
