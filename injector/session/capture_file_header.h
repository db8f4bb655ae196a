// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/records.h"
#include "injector/config.h"
#include "injector/process_identity.h"

namespace rankscope::injector {

/// Everything but processStartNs and what the block writer fills in.
void fillFileHeader(capture::FileHeader& header, const Config& config, const ProcessIdentity& identity) noexcept;

/// Start time of this process in clock ticks since boot, as /proc/self/stat says; 0 unknown.
int64_t processStartTicks() noexcept;

/// The calling thread's name as the kernel knows it.
bool readThreadName(char (&name)[17]) noexcept;

}  // namespace rankscope::injector
