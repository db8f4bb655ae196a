// SPDX-License-Identifier: Apache-2.0
#include "injector/session/light_session.h"

#include "injector/light/light_recorder.h"

namespace rankscope::injector::light {
namespace {

constinit LightTables g_tables;
constinit LightRecorder g_recorder;
constinit KernelSummaries g_kernels;

}  // namespace

void begin(CaptureSink& sink, const Config& config, uint64_t* slowSteps, const char* base,
           const capture::FileHeader& header) noexcept {
    LightRecorder::Target target{
        &CaptureSink::writeTaken, &CaptureSink::countTakersLoss, &sink, {slowSteps, config.slowStepE9}};
    if (config.kernelSummaries) {
        g_kernels.begin({[](void* to, const void* records, size_t bytes, uint32_t count, int64_t lastNs) noexcept {
                             static_cast<CaptureSink*>(to)->append(capture::Source::cupti, records, bytes, count,
                                                                   lastNs);
                         },
                         &sink});
        target.stepBegins = {[](void* to, int64_t ns) noexcept { static_cast<KernelSummaries*>(to)->stepBegins(ns); },
                             &g_kernels};
        target.hostIsAt = [](void* to, int64_t ns) noexcept { static_cast<KernelSummaries*>(to)->hostIsAt(ns); };
    }
    g_recorder.begin(g_tables, target, config.ringNs, base, header);
    sink.handTo({[](void* self, uint32_t thread, const uint8_t* record, uint64_t ringEnd) noexcept {
                     static_cast<LightRecorder*>(self)->take(thread, record, ringEnd);
                 },
                 [](void* self) noexcept { static_cast<LightRecorder*>(self)->endOfRing(); },
                 [](void* self) noexcept { static_cast<LightRecorder*>(self)->finish(); }, &g_recorder});
}

KernelSummaries& kernelSummaries() noexcept {
    return g_kernels;
}

void afterForkInChild() noexcept {
    g_kernels.afterForkInChild();
    g_recorder.abandon();
}

}  // namespace rankscope::injector::light
