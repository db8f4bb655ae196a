// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/health/health_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "analyzer/cli/job/live_processes.h"
#include "analyzer/cli/stacks/watched_processes.h"
#include "collector/store/folder_access.h"
#include "injector/capture_format/record_cursor.h"
#include "injector/machine/host_ports.h"
#include "injector/machine/port_counters.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// Counters of errors change seldom, and NVML is asked for each link by itself; those of ports likewise: each tenth
// reading, ten seconds, takes a tenth of that time.
constexpr int64_t kCounterReadings = 10;
// The injector looks for the devices of a process again and again, for the last time after 102 seconds.
constexpr auto kDevicesAreTold = std::chrono::seconds(150);

int64_t unixNowNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// "device.ORDINAL.bus_id", as the injector's metadata calls it; -1: something else.
int32_t ordinalOf(std::string_view key) {
    constexpr std::string_view kBefore = "device.", kAfter = ".bus_id";
    if (!key.starts_with(kBefore) || !key.ends_with(kAfter) || key.size() <= kBefore.size() + kAfter.size()) return -1;
    const std::string_view text = key.substr(kBefore.size(), key.size() - kBefore.size() - kAfter.size());
    int32_t ordinal = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ordinal);
    return error == std::errc() && end == text.data() + text.size() ? ordinal : -1;
}

std::string hostName() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

HealthLog::HealthLog(fs::path runDirectory, pid_t wrapper, bool isAlone)
    : m_run(std::move(runDirectory)), m_wrapper(wrapper), m_isAlone(isAlone) {
    const char* clock = std::getenv("RANKSCOPE_CLOCK");
    m_isVirtual = clock != nullptr && std::string_view(clock) == "cupti";
    m_path = m_run / "health" / fmt::format("{}.{}.txt", hostName(), wrapper);
}

// The file comes with its first line, so that jobs without devices have none.
void HealthLog::write(const std::string& line) {
    if (!m_file.is_open()) {
        if (!fs::exists(m_path.parent_path())) store::makeFolderInside(m_path.parent_path());
        m_file.open(m_path, std::ios::binary | std::ios::trunc);
        store::setFileMode(m_path);
        m_file << capture::healthHead(hostName());
    }
    m_file << line;
}

void HealthLog::follow(const std::string& capture) {
    m_followed.try_emplace(capture,
                           Followed{capture::CaptureTail((m_run / "capture" / capture).string()), Clock::now()});
}

void HealthLog::followLiving() {
    for (const WatchedProcess& process : watchedProcesses(m_run / "capture", m_wrapper)) follow(process.capture);
}

// Processes that were gone before they were seen. Beside other wrappers nobody knows whose those were that the wrapper
// has not started itself.
void HealthLog::followGone() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(m_run / "capture", ignored)) {
        if (entry.path().extension() != ".cap" || m_followed.contains(entry.path().filename().string())) continue;
        capture::CaptureTail tail(entry.path().string());
        const auto& header = tail.header();
        if (!header) continue;
        const bool isOurs = m_isAlone ? m_isVirtual || header->host == hostName() : header->parentPid == m_wrapper;
        if (isOurs) follow(entry.path().filename().string());
    }
}

void HealthLog::use(const std::string& capture, int32_t ordinal, const std::string& busId) {
    if (m_nvml == Nvml::notAsked) {
        m_nvml = m_reader.begin() ? Nvml::begun : Nvml::absent;
        if (m_nvml == Nvml::absent)
            write(capture::healthNote("NVML cannot be loaded or begun: nothing is known of how the devices did"));
    }
    if (m_nvml == Nvml::absent) return;
    write(capture::healthLine(capture::UsedDevice{capture, ordinal, busId}));
    if (m_devices.contains(busId)) return;
    Device& device = m_devices[busId];
    device.handle = m_reader.find(busId.c_str());
    if (device.handle != nullptr)
        m_reader.watchXid(device.handle);
    else
        write(capture::healthNote("NVML knows no device " + busId));
}

void HealthLog::findDevices() {
    for (auto& [name, followed] : m_followed) {
        if (Clock::now() - followed.since > kDevicesAreTold) continue;
        followed.tail.poll([&](const capture::BlockHeader& block, const std::vector<uint8_t>& payload) {
            if (block.source != capture::Source::injector) return;
            capture::RecordCursor cursor(payload.data(), payload.size());
            for (auto step = cursor.next(); step != capture::RecordCursor::Step::end; step = cursor.next()) {
                if (step != capture::RecordCursor::Step::record) continue;
                capture::RecordView record;
                record.data = cursor.record();
                record.bytes = cursor.recordBytes();
                if (record.type() != capture::RecordType::metadata) continue;
                if (const int32_t ordinal = ordinalOf(record.key()); ordinal >= 0)
                    use(name, ordinal, std::string(record.value()));
            }
        });
    }
}

capture::DeviceReading HealthLog::readingOf(const std::string& busId, Device& device, int64_t unixNs,
                                            bool withCounters) {
    const machine::DeviceHealth health =
        withCounters ? m_reader.readWithCounters(device.handle) : m_reader.read(device.handle);
    capture::DeviceReading reading;
    reading.busId = busId;
    reading.unixNs = unixNs;
    reading.smMhz = health.smMhz;
    reading.smMaxMhz = health.smMaxMhz;
    reading.memoryMhz = health.memoryMhz;
    reading.memoryMaxMhz = health.memoryMaxMhz;
    reading.clocksEvents = health.clocksEventReasons;
    reading.powerMw = health.powerMw;
    reading.powerLimitMw = health.powerLimitMw;
    reading.temperatureC = health.temperatureC;
    reading.eccCorrected = health.eccCorrected;
    reading.eccUncorrected = health.eccUncorrected;
    reading.nvlinkErrors = health.nvlinkErrors;
    reading.memoryUsedBytes = health.memoryUsedBytes;
    reading.memoryTotalBytes = health.memoryTotalBytes;
    reading.utilizationPercent = health.utilizationPercent;
    reading.xid = std::exchange(device.xid, std::nullopt);
    return reading;
}

void HealthLog::readDevices(int64_t unixNs, bool isLast) {
    while (const auto event = m_reader.nextXid())
        for (auto& [busId, device] : m_devices)
            if (device.handle == event->device) device.xid = event->xid;
    const bool withCounters = isLast || m_looks % kCounterReadings == 0;
    for (auto& [busId, device] : m_devices) {
        if (device.handle == nullptr) continue;
        device.unwritten.push_back(readingOf(busId, device, unixNs, withCounters));
        if (!isLast && static_cast<int64_t>(device.unwritten.size()) < capture::healthRowReadings(device.rows))
            continue;
        write(capture::healthLine(capture::summed(device.unwritten)));
        device.unwritten.clear();
        ++device.rows;
    }
}

void HealthLog::readPorts(int64_t unixNs) {
    const char* sysfs = machine::sysfsRoot(m_isVirtual);
    if (sysfs == nullptr) return;
    for (const machine::PortCounters& port : machine::readPortCounters(sysfs))
        write(capture::healthLine(capture::PortReading{port.name, unixNs, port.sentBytes, port.receivedBytes,
                                                       port.errors, port.discards, port.linkDowns}));
    m_portsAt = m_looks + kCounterReadings * capture::healthRowReadings(++m_portRows);
}

bool HealthLog::look() {
    followLiving();
    findDevices();
    if (m_devices.empty()) return true;
    const int64_t unixNs = unixNowNs();
    readDevices(unixNs, false);
    if (m_looks >= m_portsAt) readPorts(unixNs);
    ++m_looks;
    m_file.flush();
    return m_file.good();
}

void HealthLog::lastLook() {
    followGone();
    findDevices();
    if (m_devices.empty()) return;
    const int64_t unixNs = unixNowNs();
    readDevices(unixNs, true);
    readPorts(unixNs);
    m_file.flush();
}

}  // namespace rankscope::cli
