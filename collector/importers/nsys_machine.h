// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "collector/importers/import_loss.h"
#include "collector/importers/nsys_database.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// The devices of a report by pid and CUDA's number of the device in that process, else for all processes (-1).
std::map<std::pair<int64_t, int64_t>, LocalDevice> nsysDevices(NsysDatabase& database, ImportLosses& losses);

/// Unix time of the report's time 0. Since 2025.2 its times are those of the system's clock, which systemClockNs tells
/// for the start of the session; before that they count from this start.
/// Numbers of GPUs in the report (TARGET_INFO_GPU.id) by process and CUDA's device.
std::map<std::pair<int64_t, int64_t>, int64_t> nsysGpus(NsysDatabase& database, ImportLosses& losses);
std::optional<int64_t> nsysBaseNs(NsysDatabase& database, ImportLosses& losses);

}  // namespace rankscope::collector
