// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/health_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "collector/ingest/beside_files.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

/// Of eight devices a month has 280,000 rows of 250 bytes.
constexpr uint64_t kMostBytes = 256 << 20;

bool hasGrown(const std::optional<int64_t>& first, const std::optional<int64_t>& last) {
    return first && last && *last > *first;
}

}  // namespace

std::vector<capture::HealthFile> readHealthFiles(const std::vector<fs::path>& runDirectories,
                                                 std::vector<store::Loss>& losses) {
    std::vector<capture::HealthFile> files;
    for (const fs::path& path : textFilesIn(runDirectories, "health")) {
        const std::string name = path.filename().string();
        const auto lose = [&](store::Severity severity, int64_t count, std::string message) {
            losses.push_back({0, "health", severity, {}, "collector", count, "health/" + name, {}, std::move(message)});
        };
        std::error_code ignored;
        if (const auto bytes = fs::file_size(path, ignored); !ignored && bytes > kMostBytes) {
            lose(store::Severity::warning, 1,
                 fmt::format("health/{} is too large ({} MiB, and at most {} are read): it is left out", name,
                             bytes >> 20, kMostBytes >> 20));
            continue;
        }
        auto file = capture::parseHealthFile(wholeText(path));
        if (!file) {
            lose(store::Severity::warning, 1,
                 fmt::format("health/{} does not tell how devices did: it is left out", name));
            continue;
        }
        if (file->badLines > 0)
            lose(store::Severity::warning, file->badLines,
                 fmt::format("health/{}: {} damaged line{} left out", name, file->badLines,
                             file->badLines == 1 ? " is" : "s are"));
        for (const std::string& note : file->notes)
            lose(store::Severity::info, 1, fmt::format("devices' health on {}: {}", file->host, note));
        std::ranges::stable_sort(file->devices, {}, &capture::DeviceReading::unixNs);
        std::ranges::stable_sort(file->ports, {}, &capture::PortReading::unixNs);
        files.push_back(std::move(*file));
    }
    return files;
}

std::vector<capture::DeviceReading> readingsOf(const std::vector<capture::HealthFile>& files,
                                               const std::string& capture, int32_t ordinal) {
    for (const capture::HealthFile& file : files) {
        const auto used = std::ranges::find_if(file.used, [&](const capture::UsedDevice& device) {
            return device.capture == capture && device.ordinal == ordinal;
        });
        if (used == file.used.end()) continue;
        std::vector<capture::DeviceReading> readings;
        for (const capture::DeviceReading& reading : file.devices)
            if (reading.busId == used->busId) readings.push_back(reading);
        if (!readings.empty()) return readings;
    }
    return {};
}

std::vector<capture::DeviceReading> withoutTimes(const std::vector<capture::DeviceReading>& readings) {
    if (readings.empty()) return {};
    // Counters are read now and then: the first and the last time that they were tell whether they have grown.
    capture::DeviceReading first = capture::summed(readings);
    first.readings = 1;
    capture::DeviceReading last = first;
    bool grew = false;
    for (const auto counter : {&capture::DeviceReading::eccCorrected, &capture::DeviceReading::eccUncorrected,
                               &capture::DeviceReading::nvlinkErrors}) {
        const auto told = std::ranges::find_if(
            readings, [&](const capture::DeviceReading& reading) { return (reading.*counter).has_value(); });
        if (told == readings.end()) continue;
        grew = grew || hasGrown((*told).*counter, last.*counter);
        first.*counter = (*told).*counter;
    }
    return grew ? std::vector{first, last} : std::vector{first};
}

store::DeviceHealth rowOf(const capture::DeviceReading& reading) {
    store::DeviceHealth row;
    row.readings = reading.readings;
    row.smMhz = reading.smMhz;
    row.smMaxMhz = reading.smMaxMhz;
    row.memoryMhz = reading.memoryMhz;
    row.memoryMaxMhz = reading.memoryMaxMhz;
    row.clocksEvents = reading.clocksEvents;
    row.powerMw = reading.powerMw;
    row.powerLimitMw = reading.powerLimitMw;
    row.temperatureC = reading.temperatureC;
    row.eccCorrected = reading.eccCorrected;
    row.eccUncorrected = reading.eccUncorrected;
    row.nvlinkErrors = reading.nvlinkErrors;
    row.memoryUsedBytes = reading.memoryUsedBytes;
    row.memoryTotalBytes = reading.memoryTotalBytes;
    row.utilizationPercent = reading.utilizationPercent;
    row.xid = reading.xid;
    return row;
}

}  // namespace rankscope::collector
