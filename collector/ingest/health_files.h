// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collector/store/event_model.h"
#include "injector/capture_format/health_file.h"

namespace rankscope::collector {

/// What NAME/health of these run directories tells. What cannot be read, and what the files themselves say is missing,
/// becomes a loss.
std::vector<capture::HealthFile> readHealthFiles(const std::vector<std::filesystem::path>& runDirectories,
                                                 std::vector<store::Loss>& losses);

/// The readings of the device with this CUDA ordinal in the process of that capture, in the order of time; empty where
/// nobody read it.
std::vector<capture::DeviceReading> readingsOf(const std::vector<capture::HealthFile>& files,
                                               const std::string& capture, int32_t ordinal);

/// Of a run in virtual time, which has no place for the real time of readings: what does not depend on how many there
/// were. The sum of all, and where counters have grown, the last behind it.
std::vector<capture::DeviceReading> withoutTimes(const std::vector<capture::DeviceReading>& readings);

store::DeviceHealth rowOf(const capture::DeviceReading& reading);

}  // namespace rankscope::collector
