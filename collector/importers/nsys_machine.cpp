// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/nsys_machine.h"

#include <algorithm>

namespace rankscope::collector {

std::map<std::pair<int64_t, int64_t>, LocalDevice> nsysDevices(NsysDatabase& database, ImportLosses& losses) {
    std::map<int64_t, LocalDevice> byId;
    std::map<std::pair<int64_t, int64_t>, LocalDevice> result;
    database.forEach(
        "TARGET_INFO_GPU", {"id", "cuDevice", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"}, losses,
        [&](const NsysDatabase::Row& row) {
            const std::optional<int64_t> id = row.integer(0);
            if (!id) return;
            LocalDevice device;
            device.name = row.text(2);
            device.memoryBytes = row.integer(3);
            device.multiprocessors = row.integer(4);
            const std::optional<int64_t> major = row.integer(5);
            if (major && *major > 0 && *major < 100)
                device.computeCapability = *major * 10 + std::clamp<int64_t>(row.integer(6).value_or(0), 0, 9);
            byId[*id] = device;
            result[{-1, row.integer(1).value_or(*id)}] = device;
        });
    database.forEach("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, losses, [&](const NsysDatabase::Row& row) {
        const auto device = byId.find(row.integer(0).value_or(-1));
        if (device != byId.end() && row.integer(1) && row.integer(2))
            result[{*row.integer(2), *row.integer(1)}] = device->second;
    });
    return result;
}

std::map<std::pair<int64_t, int64_t>, int64_t> nsysGpus(NsysDatabase& database, ImportLosses& losses) {
    std::map<std::pair<int64_t, int64_t>, int64_t> result;
    database.forEach("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, losses, [&](const NsysDatabase::Row& row) {
        if (row.integer(0) && row.integer(1) && row.integer(2))
            result[{*row.integer(2), *row.integer(1)}] = *row.integer(0);
    });
    return result;
}

std::optional<int64_t> nsysBaseNs(NsysDatabase& database, ImportLosses& losses) {
    std::optional<int64_t> base;
    database.forEach(
        "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"}, losses, [&](const NsysDatabase::Row& row) {
            int64_t at = 0;
            if (row.integer(0) && !__builtin_sub_overflow(*row.integer(0), row.integer(1).value_or(0), &at) &&
                isNsysTime(at))
                base = at;
        });
    return base;
}

}  // namespace rankscope::collector
