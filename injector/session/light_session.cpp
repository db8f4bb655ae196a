// SPDX-License-Identifier: Apache-2.0
#include "injector/session/light_session.h"

#include "injector/light/light_recorder.h"

namespace rankscope::injector::light {
namespace {

constinit LightTables g_tables;
constinit LightRecorder g_recorder;

}  // namespace

void begin(CaptureSink& sink, const Config& config, uint64_t* slowSteps, const char* base,
           const capture::FileHeader& header) noexcept {
    g_recorder.begin(g_tables,
                     {&CaptureSink::writeTaken, &CaptureSink::countTakersLoss, &sink, {slowSteps, config.slowStepE9}},
                     config.ringNs, base, header);
    sink.handTo({[](void* self, uint32_t thread, const uint8_t* record, uint64_t ringEnd) noexcept {
                     static_cast<LightRecorder*>(self)->take(thread, record, ringEnd);
                 },
                 [](void* self) noexcept { static_cast<LightRecorder*>(self)->endOfRing(); },
                 [](void* self) noexcept { static_cast<LightRecorder*>(self)->finish(); }, &g_recorder});
}

void afterForkInChild() noexcept {
    g_recorder.abandon();
}

}  // namespace rankscope::injector::light
