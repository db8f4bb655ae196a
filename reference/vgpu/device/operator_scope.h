// SPDX-License-Identifier: Apache-2.0
// The operators of a framework that are under way on a thread, and what the kernels launched beneath them cost.
#pragma once

#include <memory>
#include <vector>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/operator_api.h"

namespace rankscope::vgpu {

/// Where a launch's duration is written once its operator's work is known: until then the thread publishes no later
/// time, so that nothing of it has begun. A captured launch reads it whenever its graph is launched.
struct LaunchPrice {
    struct Issued {
        Op* op;
        double factor;  ///< of the device, and noise
    };
    double blocks = 1;
    double healthyNs = 0;
    bool isKnown = false;
    std::vector<Issued> waiting;

    void settle(double ns);
};
int64_t actualNs(double healthyNs, double factor);

void beginOperator(const char* name, const RankscopeWork& expected);
void endOperator(const RankscopeWork& work);

/// Null where no operator is under way on the calling thread.
std::shared_ptr<LaunchPrice> priceByOperator(double blocks);
/// What the operator does is in the price of a kernel that declares its work: its other kernels cost the least.
void operatorIsPaid();

/// See RankscopeOperatorHooks::answer.
void answerNextRead(const void* bytes);
/// What a copy to the host reads: `from`, or the answer that was given for it.
const void* sourceOfRead(const void* from, size_t bytes);

/// True while launches of the calling thread have no price.
bool hasUnpricedLaunches();
/// The calling thread is about to wait: its launches are priced by what their operators expected.
void priceUnpricedLaunches();

}  // namespace rankscope::vgpu
