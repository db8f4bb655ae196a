// SPDX-License-Identifier: Apache-2.0
// How devices and ports did while a job ran: NAME/health/*.txt, text for people and for the collector, written line by
// line beside the job. HEALTH.md tells the same in prose. Offline: never written in the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::capture {

/// A device that a process of the job uses.
struct UsedDevice {
    std::string capture;  ///< file name of the process's capture
    int32_t ordinal = 0;  ///< CUDA's, in that process
    std::string busId;    ///< "0000:3b:00.0"
};

/// One or several readings of a device. Nothing: not told.
struct DeviceReading {
    std::string busId;
    int64_t unixNs = 0;    ///< wall-clock time of the first
    int64_t readings = 1;  ///< that this row sums up; they are about a second apart
    std::optional<int64_t> smMhz, smMaxMhz, memoryMhz, memoryMaxMhz;    ///< mean
    std::optional<int64_t> clocksEvents;                                ///< all bits of nvmlClocksEventReasons seen
    std::optional<int64_t> powerMw, powerLimitMw;                       ///< mean
    std::optional<int64_t> temperatureC;                                ///< highest
    std::optional<int64_t> eccCorrected, eccUncorrected, nvlinkErrors;  ///< counted so far, at the last reading
    std::optional<int64_t> memoryUsedBytes, memoryTotalBytes;           ///< highest
    std::optional<int64_t> utilizationPercent;                          ///< mean
    std::optional<int64_t> xid;  ///< a critical error of the device in that time (the last one)
};

/// What a port of the host has counted so far.
struct PortReading {
    std::string port;
    int64_t unixNs = 0;
    std::optional<int64_t> sentBytes, receivedBytes, errors, discards, linkDowns;
};

struct HealthFile {
    std::string host;
    std::vector<UsedDevice> used;
    std::vector<DeviceReading> devices;
    std::vector<PortReading> ports;
    std::vector<std::string> notes;  ///< what could not be read, and why
    int64_t badLines = 0;
};

/// Lines, each with its newline. The first is healthHead()'s.
std::string healthHead(std::string_view host);
std::string healthLine(const UsedDevice& device);
std::string healthLine(const DeviceReading& reading);
std::string healthLine(const PortReading& reading);
std::string healthNote(std::string_view note);

/// Nothing for what does not begin as such a file. Lines that it does not know are skipped, a cut last line is dropped,
/// damaged ones are counted, and so are numbers and notes that no helper writes. What is beyond kMostReadings is left
/// out.
std::optional<HealthFile> parseHealthFile(std::string_view text);

/// Of one file, a month of eight devices: rows become coarser with time (healthRowReadings).
inline constexpr size_t kMostReadings = 1 << 20;

/// How many readings the next row of a device sums up, when so many rows are written: one for an hour's rows, then two
/// for as many, then four... so that a file grows by the logarithm of the time.
int64_t healthRowReadings(int64_t rowsWritten);

/// Several readings of a device in one row. `readings` is not empty, in the order of time.
DeviceReading summed(const std::vector<DeviceReading>& readings);

}  // namespace rankscope::capture
