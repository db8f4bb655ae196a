// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/operator_hooks.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/device/operator_scope.h"
#include "reference/vgpu/device/profiler_clock.h"

namespace rankscope::vgpu {
namespace {

// As much as moves whole between ranks (exchange.cpp).
constexpr uint64_t kValueBytes = 64 << 10;

uint64_t valueBytes() {
    const char* text = std::getenv("RANKSCOPE_VGPU_VALUE_BYTES");
    return text && *text ? std::strtoull(text, nullptr, 10) : kValueBytes;
}

void hostWork(int64_t ns) {
    LocalProcess& process = LocalProcess::instance();
    ThreadClock& thread = process.clock();
    ProfilerClock::instance().mark(thread);
    thread.ns += std::max<int64_t>(0, ns);
    ProfilerClock::instance().mark(thread);
    process.publish(thread);
}

void effect(int device, void* handle, void (*run)(void*), void* data, void (*release)(void*)) {
    std::shared_ptr<void> kept(data, release);
    LocalProcess& process = LocalProcess::instance();
    process.clock();  // the thread is known from here on
    std::lock_guard guard(process.mutex());
    LocalStream* stream = resolveStream(process, device, static_cast<cudaStream_t>(handle), false);
    if (stream) enqueueCostless(*stream, [run, kept = std::move(kept)] { run(kept.get()); });
}

}  // namespace

const RankscopeOperatorHooks& operatorHooks() {
    static const RankscopeOperatorHooks hooks{
        RANKSCOPE_OPERATOR_API,
        static_cast<int64_t>(LocalProcess::instance().cluster().operatorUs * 1000),
        valueBytes(),
        [](const char* name, const RankscopeWork* expected) { beginOperator(name, *expected); },
        [](const RankscopeWork* work) { endOperator(*work); },
        hostWork,
        effect,
        answerNextRead,
        zeroMemory};
    return hooks;
}

}  // namespace rankscope::vgpu
