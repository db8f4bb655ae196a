// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/attribution.h"

#include <algorithm>

namespace rankscope::facts {

Attribution& Attribution::operator+=(const Attribution& other) {
    stepNs += other.stepNs;
    computeNs += other.computeNs;
    exposedWaitNs += other.exposedWaitNs;
    exposedTransferNs += other.exposedTransferNs;
    lateTransferNs += other.lateTransferNs;
    unsplitNs += other.unsplitNs;
    overlappedCommNs += other.overlappedCommNs;
    memoryNs += other.memoryNs;
    idleNs += other.idleNs;
    return *this;
}

Attribution attribute(const DeviceActivity& activity, int64_t startNs, int64_t endNs, IntervalSet* idle) {
    const IntervalSet compute = clip(activity.compute, startNs, endNs);
    const IntervalSet transfer = clip(activity.transfer, startNs, endNs);
    const IntervalSet communication = unite(transfer, clip(activity.wait, startNs, endNs));
    const IntervalSet busy = unite(compute, communication);
    const IntervalSet memory = subtract(clip(activity.memory, startNs, endNs), busy);
    const IntervalSet exposed = subtract(communication, compute);

    Attribution result;
    result.stepNs = std::max<int64_t>(0, endNs - startNs);
    result.computeNs = length(compute);
    // Where one kernel waits while another transfers, the rank communicates.
    result.exposedTransferNs = length(subtract(transfer, compute));
    result.exposedWaitNs = length(exposed) - result.exposedTransferNs;
    result.overlappedCommNs = length(communication) - length(exposed);
    result.memoryNs = length(memory);
    result.idleNs = result.stepNs - length(busy) - result.memoryNs;
    if (idle != nullptr) *idle = subtract({{startNs, endNs}}, unite(busy, memory));
    return result;
}

}  // namespace rankscope::facts
