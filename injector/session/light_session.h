// SPDX-License-Identifier: Apache-2.0
// The light half of the session, one per process: what becomes of records when `--ring` bounds their detail, and of
// kernels that are told as summaries.
#pragma once

#include <cstdint>

#include "injector/config.h"
#include "injector/light/kernel_summaries.h"
#include "injector/record/capture_sink.h"

namespace rankscope::injector::light {

/// Before the first record. `base`: path of the capture file without its ending; `header`: as it has.
/// `slowSteps`: where steps are counted that take more than `config` allows.
void begin(CaptureSink& sink, const Config& config, uint64_t* slowSteps, const char* base,
           const capture::FileHeader& header) noexcept;

/// Of `--light=kernels`; else it is off.
KernelSummaries& kernelSummaries() noexcept;

void afterForkInChild() noexcept;

}  // namespace rankscope::injector::light
