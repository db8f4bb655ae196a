// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/health_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace rankscope::capture {
namespace {

constexpr std::string_view kFirstLine = "rankscope health 1";

constexpr int64_t kMostDoublings = 20;  // a row for twelve days
constexpr int64_t kMostReadingsOfRow = int64_t{1} << kMostDoublings;

enum class Sum : uint8_t { mean, highest, last, bits };

template <typename Reading>
struct Field {
    std::string_view name;
    std::optional<int64_t> Reading::*value;
    Sum sum = Sum::last;
};

constexpr Field<DeviceReading> kDeviceFields[] = {
    {"sm_mhz", &DeviceReading::smMhz, Sum::mean},
    {"sm_max_mhz", &DeviceReading::smMaxMhz, Sum::highest},
    {"memory_mhz", &DeviceReading::memoryMhz, Sum::mean},
    {"memory_max_mhz", &DeviceReading::memoryMaxMhz, Sum::highest},
    {"clocks_events", &DeviceReading::clocksEvents, Sum::bits},
    {"power_mw", &DeviceReading::powerMw, Sum::mean},
    {"power_limit_mw", &DeviceReading::powerLimitMw, Sum::mean},
    {"temperature_c", &DeviceReading::temperatureC, Sum::highest},
    {"ecc_corrected", &DeviceReading::eccCorrected, Sum::last},
    {"ecc_uncorrected", &DeviceReading::eccUncorrected, Sum::last},
    {"nvlink_errors", &DeviceReading::nvlinkErrors, Sum::last},
    {"memory_used_bytes", &DeviceReading::memoryUsedBytes, Sum::highest},
    {"memory_total_bytes", &DeviceReading::memoryTotalBytes, Sum::highest},
    {"utilization_percent", &DeviceReading::utilizationPercent, Sum::mean},
    {"xid", &DeviceReading::xid, Sum::last},
};
constexpr Field<PortReading> kPortFields[] = {
    {"sent_bytes", &PortReading::sentBytes}, {"received_bytes", &PortReading::receivedBytes},
    {"errors", &PortReading::errors},        {"discards", &PortReading::discards},
    {"link_downs", &PortReading::linkDowns},
};

/// A name as one word of a line.
std::string oneWord(std::string_view text) {
    std::string word(text);
    for (char& c : word)
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) c = '?';
    return word.empty() ? "?" : word;
}

template <typename Reading, size_t N>
std::string fieldsText(const Reading& reading, const Field<Reading> (&fields)[N]) {
    std::string text;
    for (const Field<Reading>& field : fields)
        if (const auto& value = reading.*field.value)
            text.append(" ").append(field.name).append("=").append(std::to_string(*value));
    return text + '\n';
}

/// No time, count or rate of a job is negative, or near what 64 bits hold: sums and differences of two of them fit.
constexpr int64_t kMostValue = int64_t{1} << 62;

bool readNumber(std::string_view text, int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= kMostValue;
}

std::string_view nextWord(std::string_view& rest) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

/// "NAME=NUMBER ..." into the fields; names that it does not know are skipped.
template <typename Reading, size_t N>
bool readFields(std::string_view rest, Reading& reading, const Field<Reading> (&fields)[N]) {
    while (!rest.empty()) {
        const std::string_view word = nextWord(rest);
        const size_t equals = word.find('=');
        int64_t value = 0;
        if (equals == std::string_view::npos || !readNumber(word.substr(equals + 1), value)) return false;
        for (const Field<Reading>& field : fields)
            if (field.name == word.substr(0, equals)) reading.*field.value = value;
    }
    return true;
}

bool readDevice(std::string_view rest, HealthFile& file) {
    DeviceReading reading;
    reading.busId = nextWord(rest);
    if (!readNumber(nextWord(rest), reading.unixNs) || !readNumber(nextWord(rest), reading.readings)) return false;
    if (reading.readings < 1 || reading.readings > kMostReadingsOfRow || !readFields(rest, reading, kDeviceFields))
        return false;
    file.devices.push_back(std::move(reading));
    return true;
}

bool readPort(std::string_view rest, HealthFile& file) {
    PortReading reading;
    reading.port = nextWord(rest);
    if (!readNumber(nextWord(rest), reading.unixNs) || !readFields(rest, reading, kPortFields)) return false;
    file.ports.push_back(std::move(reading));
    return true;
}

bool readProcess(std::string_view rest, HealthFile& file) {
    UsedDevice used;
    used.capture = nextWord(rest);
    int64_t ordinal = 0;
    if (!readNumber(nextWord(rest), ordinal) || ordinal > std::numeric_limits<int32_t>::max()) return false;
    used.ordinal = static_cast<int32_t>(ordinal);
    used.busId = nextWord(rest);
    if (used.busId.empty()) return false;
    file.used.push_back(std::move(used));
    return true;
}

/// The helper says of each device once what it does not tell.
bool readNote(std::string_view note, HealthFile& file) {
    constexpr size_t kMostNotes = 256, kLongestNote = 1024;
    if (note.size() > kLongestNote || file.notes.size() >= kMostNotes) return false;
    file.notes.emplace_back(note);
    return true;
}

bool readHost(std::string_view host, HealthFile& file) {
    constexpr size_t kLongestHost = 255;  // HOST_NAME_MAX of any system
    if (host.size() > kLongestHost) return false;
    file.host = host;
    return true;
}

bool readLine(std::string_view line, HealthFile& file) {
    const std::string_view kind = nextWord(line);
    if (kind == "device") return readDevice(line, file);
    if (kind == "port") return readPort(line, file);
    if (kind == "process") return readProcess(line, file);
    if (kind == "host") return readHost(line, file);
    if (kind == "note") return readNote(line, file);
    return true;
}

}  // namespace

std::string healthHead(std::string_view host) {
    return std::string(kFirstLine) + "\nhost " + oneWord(host) + '\n';
}

std::string healthLine(const UsedDevice& device) {
    return "process " + oneWord(device.capture) + ' ' + std::to_string(device.ordinal) + ' ' + oneWord(device.busId) +
           '\n';
}

std::string healthLine(const DeviceReading& reading) {
    return "device " + oneWord(reading.busId) + ' ' + std::to_string(reading.unixNs) + ' ' +
           std::to_string(reading.readings) + fieldsText(reading, kDeviceFields);
}

std::string healthLine(const PortReading& reading) {
    return "port " + oneWord(reading.port) + ' ' + std::to_string(reading.unixNs) + fieldsText(reading, kPortFields);
}

std::string healthNote(std::string_view note) {
    std::string line = "note ";
    for (const char c : note) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return line + '\n';
}

std::optional<HealthFile> parseHealthFile(std::string_view text) {
    HealthFile file;
    bool isFirst = true;
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
        const std::string_view line = text.substr(0, end);
        if (isFirst && line != kFirstLine) return std::nullopt;
        if (!isFirst && file.devices.size() + file.ports.size() + file.used.size() >= kMostReadings) break;
        if (!isFirst && !readLine(line, file)) ++file.badLines;
        isFirst = false;
    }
    return isFirst ? std::nullopt : std::optional(std::move(file));
}

int64_t healthRowReadings(int64_t rowsWritten) {
    constexpr int64_t kRowsOfOneSize = 3600;
    return int64_t{1} << std::min(rowsWritten / kRowsOfOneSize, kMostDoublings);
}

DeviceReading summed(const std::vector<DeviceReading>& readings) {
    DeviceReading result = readings.front();
    result.readings = 0;
    for (const DeviceReading& reading : readings) result.readings += reading.readings;
    for (const Field<DeviceReading>& field : kDeviceFields) {
        std::optional<int64_t> value;
        double weighted = 0, weight = 0;
        for (const DeviceReading& reading : readings) {
            const auto& one = reading.*field.value;
            if (!one) continue;
            weighted += static_cast<double>(*one) * static_cast<double>(reading.readings);
            weight += static_cast<double>(reading.readings);
            value = !value || field.sum == Sum::last ? *one
                    : field.sum == Sum::bits         ? *value | *one
                                                     : std::max(*value, *one);
        }
        if (value && field.sum == Sum::mean) value = static_cast<int64_t>(weighted / weight + 0.5);
        result.*field.value = value;
    }
    return result;
}

}  // namespace rankscope::capture
