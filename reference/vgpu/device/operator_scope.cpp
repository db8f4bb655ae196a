// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/operator_scope.h"

#include <algorithm>
#include <utility>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/work_price.h"

namespace rankscope::vgpu {
namespace {

struct OpenOperator {
    const char* name;
    RankscopeWork expected;
    double chargedNs = 0;
    bool isPaid = false;
    const void* answer = nullptr;
    std::vector<std::shared_ptr<LaunchPrice>> launches;  ///< without a price so far
};

struct Scope {
    std::vector<OpenOperator> open;
    size_t unpriced = 0;  ///< launches in all of them
};
thread_local Scope t_scope;

double totalNs(const OpenOperator& scope, const RankscopeWork& work) {
    if (scope.isPaid) return 0;
    const LocalProcess& process = LocalProcess::instance();
    const double measured = process.prices().operatorNs(process.cluster(), scope.name, work);
    return measured >= 0 ? measured : workNs(process.cluster(), work);
}

/// Each launch gets what its blocks are of all blocks: an operator that has to launch several times deals its work out
/// in blocks of the same size.
void charge(OpenOperator& scope, const RankscopeWork& work) {
    if (scope.launches.empty()) return;
    const double left = std::max(0.0, totalNs(scope, work) - scope.chargedNs);
    double blocks = 0;
    for (const auto& launch : scope.launches) blocks += launch->blocks;
    for (const auto& launch : scope.launches) launch->settle(left * launch->blocks / blocks);
    scope.chargedNs += left;
    t_scope.unpriced -= scope.launches.size();
    scope.launches.clear();
}

}  // namespace

int64_t actualNs(double healthyNs, double factor) {
    return std::max<int64_t>(1, static_cast<int64_t>(healthyNs * factor));
}

void LaunchPrice::settle(double ns) {
    healthyNs = std::max(kShortestKernelNs, ns);
    isKnown = true;
    for (const Issued& issued : waiting) issued.op->workNs = actualNs(healthyNs, issued.factor);
    waiting.clear();
}

void beginOperator(const char* name, const RankscopeWork& expected) {
    t_scope.open.push_back({name, expected});
}

void endOperator(const RankscopeWork& work) {
    if (t_scope.open.empty()) return;
    charge(t_scope.open.back(), work);
    t_scope.open.pop_back();
    if (t_scope.unpriced) return;
    if (ThreadClock* thread = LocalProcess::clockIfAny()) LocalProcess::instance().publish(*thread);
}

std::shared_ptr<LaunchPrice> priceByOperator(double blocks) {
    if (t_scope.open.empty()) return nullptr;
    auto price = std::make_shared<LaunchPrice>();
    price->blocks = std::max(1.0, blocks);
    t_scope.open.back().launches.push_back(price);
    t_scope.unpriced++;
    return price;
}

void operatorIsPaid() {
    if (!t_scope.open.empty()) t_scope.open.back().isPaid = true;
}

void answerNextRead(const void* bytes) {
    if (!t_scope.open.empty()) t_scope.open.back().answer = bytes;
}

const void* sourceOfRead(const void* from, size_t bytes) {
    constexpr size_t kAnswerBytes = 8;
    if (bytes > kAnswerBytes) return from;
    for (auto scope = t_scope.open.rbegin(); scope != t_scope.open.rend(); ++scope)
        if (scope->answer) return std::exchange(scope->answer, nullptr);
    return from;
}

bool hasUnpricedLaunches() {
    return t_scope.unpriced != 0;
}

void priceUnpricedLaunches() {
    if (!hasUnpricedLaunches()) return;
    for (OpenOperator& scope : t_scope.open) charge(scope, scope.expected);
}

}  // namespace rankscope::vgpu
