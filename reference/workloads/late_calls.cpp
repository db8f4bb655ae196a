// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/late_calls.h"

#include <algorithm>

#include "reference/workloads/check.h"

namespace rankscope::reference {

namespace {

constexpr int64_t kLooksPerLag = 16;

bool happened(cudaEvent_t event) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) return false;
    require(status, "cudaEventQuery");
    return true;
}

}  // namespace

LateCalls::~LateCalls() {
    for (const Call& call : m_calls)
        if (call.due) cudaEventDestroy(call.due);
    for (cudaEvent_t event : m_freeEvents) cudaEventDestroy(event);
}

cudaEvent_t LateCalls::mark(cudaStream_t compute) {
    cudaEvent_t event = nullptr;
    if (m_freeEvents.empty()) {
        require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    } else {
        event = m_freeEvents.back();
        m_freeEvents.pop_back();
    }
    require(cudaEventRecord(event, compute), "cudaEventRecord");
    return event;
}

void LateCalls::communicate(cudaStream_t compute, std::function<void()> call) {
    if (!enabled()) return call();
    m_calls.push_back({std::move(call), mark(compute), nullptr, nullptr, -1});
}

void LateCalls::order(cudaStream_t compute, cudaStream_t stream) {
    m_calls.push_back({[] {}, mark(compute), nullptr, stream, -1});
}

void LateCalls::prepare(std::function<void()> call, cudaEvent_t records) {
    if (!enabled()) return call();
    m_calls.push_back({std::move(call), nullptr, records, nullptr, -1});
}

void LateCalls::issueUntil(cudaEvent_t recorded) {
    const auto last =
        std::find_if(m_calls.rbegin(), m_calls.rend(), [&](const Call& call) { return call.records == recorded; });
    for (auto left = m_calls.rend() - last; left > 0; --left) issueFront();
}

void LateCalls::issueAll() {
    while (!m_calls.empty()) issueFront();
}

void LateCalls::issueFront() {
    Call& front = m_calls.front();
    if (front.due) {
        const int64_t look = std::clamp<int64_t>(m_lagNs / kLooksPerLag, 20000, 1000000);
        while (true) {
            for (Call& call : m_calls) {
                if (!call.due || call.dueNs >= 0) continue;
                if (!happened(call.due)) break;
                call.dueNs = m_clockNs;
            }
            if (front.dueNs < 0)
                passTime(look);
            else if (m_clockNs < front.dueNs + m_lagNs)
                passTime(std::min(look, front.dueNs + m_lagNs - m_clockNs));
            else
                break;
        }
        if (front.follows) require(cudaStreamWaitEvent(front.follows, front.due, 0), "cudaStreamWaitEvent");
        m_freeEvents.push_back(front.due);
    }
    const std::function<void()> make = std::move(front.make);
    m_calls.pop_front();
    make();
}

void LateCalls::passTime(int64_t ns) {
    m_virtualGpu.hostWork(ns);
    m_clockNs += ns;
}

}  // namespace rankscope::reference
