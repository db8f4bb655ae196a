// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/planted_failures.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/workloads/check.h"

namespace rankscope::reference {

namespace {

constexpr int64_t kLookNs = 100000000;  // how often a watchdog looks
constexpr size_t kBeyondMemory = size_t{1} << 30;
constexpr unsigned kLauncherSeconds = 1;  // what a launcher needs to notice that the others ended

int64_t secondsToNs(double seconds) {
    return std::llround(seconds * 1e9);
}

void runOutOfMemory() {
    size_t freeBytes = 0;
    size_t deviceBytes = 0;
    require(cudaMemGetInfo(&freeBytes, &deviceBytes), "cudaMemGetInfo");
    void* memory = nullptr;
    const size_t bytes = freeBytes + kBeyondMemory;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    require(status, ("out of memory: tried to allocate " + std::to_string(bytes) + " bytes, " +
                     std::to_string(freeBytes) + " are free: cudaMalloc")
                        .c_str());
}

}  // namespace

void PlantedFailures::strike(int step) const {
    const auto here = [&](const auto& fault) { return fault && fault->rank == m_rank && fault->step == step; };
    if (here(m_faults.kill)) m_virtualGpu.die(SIGKILL);
    if (here(m_faults.oom)) runOutOfMemory();
    if (here(m_faults.missingRank) && m_faults.missingRank->where != MissingRank::Where::loader) hang();
    if (here(m_faults.exception)) {
        fprintf(stderr, "[rank%d]: Traceback (most recent call last):\n[rank%d]: RuntimeError: planted\n", m_rank,
                m_rank);
        exit(EXIT_FAILURE);
    }
    if (m_faults.endedByUser && m_faults.endedByUser->step == step) m_virtualGpu.die(m_faults.endedByUser->signal);
}

void PlantedFailures::load(int step) const {
    const auto& missing = m_faults.missingRank;
    if (missing && missing->where == MissingRank::Where::loader && missing->rank == m_rank && missing->step == step)
        hang();
}

void PlantedFailures::hang() const {
    // The others see it missing and end; then the launcher ends this one.
    m_virtualGpu.hostWork(secondsToNs(m_faults.watchdogSeconds) + 2 * kLookNs);
    if (m_faults.missingRank->where == MissingRank::Where::stopped) raise(SIGSTOP);  // until somebody kills it
    sleep(kLauncherSeconds);
    m_virtualGpu.die(SIGTERM);
}

bool PlantedFailures::disagrees(int step) const {
    const auto& mismatch = m_faults.mismatch;
    return mismatch && !m_disagreed && mismatch->rank == m_rank && mismatch->step == step;
}

Collective PlantedFailures::disagreeing(Collective collective, int groupSize) const {
    switch (m_faults.mismatch->what) {
        case Mismatch::What::size:
            collective.elements = std::max<int64_t>(1, collective.elements / 2);
            break;
        case Mismatch::What::dtype:
            if (collective.dtype == Dtype::fp32) {
                collective.dtype = Dtype::bf16;
            } else {
                collective.dtype = Dtype::fp32;
                collective.elements = std::max<int64_t>(1, collective.elements / 2);
            }
            break;
        case Mismatch::What::op:
            if (collective.op == Collective::Op::allReduce) {
                collective.op = Collective::Op::reduceScatter;
                collective.elements = std::max<int64_t>(1, collective.elements / groupSize);
            } else {
                collective.op = Collective::Op::allReduce;
            }
            break;
        case Mismatch::What::order:
        case Mismatch::What::root:
            break;
    }
    return collective;
}

void PlantedFailures::issue(int step, int groupSize, const Collective& collective,
                            const std::function<void(const Collective&)>& issue) {
    if (!disagrees(step) || m_faults.mismatch->what == Mismatch::What::root) return issue(collective);
    if (m_faults.mismatch->what != Mismatch::What::order) {
        m_disagreed = true;
        return issue(disagreeing(collective, groupSize));
    }
    // Two that follow each other on a communicator and are not the same change places; across communicators NCCL would
    // not notice.
    if (m_held && collective.communicator == m_heldCollective.communicator && !(collective == m_heldCollective)) {
        m_disagreed = true;
        issue(collective);
        return std::exchange(m_held, nullptr)();
    }
    if (m_held) m_held();
    m_heldCollective = collective;
    m_held = [issue, collective] { issue(collective); };
}

void PlantedFailures::waitFor(cudaStream_t stream, int step) {
    if (m_held) {
        std::exchange(m_held, nullptr)();
        throw std::runtime_error("'mismatch' of 'order' changes nothing in step " + std::to_string(step) +
                                 ": no two collectives that differ follow each other on a communicator; smaller "
                                 "buckets (parallel.bucket_mb) or more layers make some");
    }
    if (step < m_faults.watchedFromStep) return require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (int64_t waitedNs = 0; waitedNs < secondsToNs(m_faults.watchdogSeconds); waitedNs += kLookNs) {
        const cudaError_t status = cudaStreamQuery(stream);
        if (status == cudaSuccess) return;
        if (status != cudaErrorNotReady) require(status, "cudaStreamQuery");
        m_virtualGpu.hostWork(kLookNs);
    }
    fprintf(stderr,
            "[rank%d]: Watchdog caught collective operation timeout: step %d ran for %.0f seconds before timing out.\n",
            m_rank, step, m_faults.watchdogSeconds);
    m_virtualGpu.die(SIGABRT);
}

}  // namespace rankscope::reference
