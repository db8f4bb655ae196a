// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

// The likeliest reason why a job left no recording, found by looking at its command (a statically linked or privileged
// program is not injected), at the place of the recording and at the machine.
std::string whyNothingRecorded(const ProcessToStart& job, const std::filesystem::path& captureFolder);

}  // namespace rankscope::cli
