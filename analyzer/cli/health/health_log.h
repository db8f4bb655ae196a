// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "injector/capture_format/capture_tail.h"
#include "injector/capture_format/health_file.h"
#include "injector/machine/device_health.h"

namespace rankscope::cli {

// Reads how the devices of a job's processes and the ports of their host do, and writes it into NAME/health
// (injector/capture_format/HEALTH.md). Finds out by the captures which processes use which devices. For a process
// beside the job, which may hang with the driver.
class HealthLog {
  public:
    // `wrapper`: the processes below it are the job's; with `isAlone` all of this host that record into the run.
    HealthLog(std::filesystem::path runDirectory, pid_t wrapper, bool isAlone);

    // Reads once. False where the file cannot be written any more.
    bool look();
    // The same for the last time: also of processes that are gone by now, and rows that are not full yet.
    void lastLook();

  private:
    using Clock = std::chrono::steady_clock;
    struct Followed {
        capture::CaptureTail tail;
        Clock::time_point since;
    };
    struct Device {
        machine::NvmlDevice handle = nullptr;
        std::vector<capture::DeviceReading> unwritten;
        int64_t rows = 0;
        std::optional<int64_t> xid;
    };
    void follow(const std::string& capture);
    void followLiving();
    void followGone();
    void findDevices();
    void use(const std::string& capture, int32_t ordinal, const std::string& busId);
    void readDevices(int64_t unixNs, bool isLast);
    void readPorts(int64_t unixNs);
    void write(const std::string& line);
    capture::DeviceReading readingOf(const std::string& busId, Device& device, int64_t unixNs, bool withCounters);

    std::filesystem::path m_run;
    pid_t m_wrapper;
    bool m_isAlone;
    std::ofstream m_file;
    std::filesystem::path m_path;
    std::map<std::string, Followed> m_followed;  // by file name of the capture
    std::map<std::string, Device> m_devices;     // by bus id
    machine::HealthReader m_reader;
    enum class Nvml { notAsked, begun, absent } m_nvml = Nvml::notAsked;
    bool m_isVirtual = false;
    int64_t m_looks = 0;  // in which there was a device
    int64_t m_portRows = 0;
    int64_t m_portsAt = 0;  // m_looks of the next row
};

}  // namespace rankscope::cli
