// SPDX-License-Identifier: Apache-2.0
#include "gui/session/counter_loader.h"

#include <algorithm>
#include <array>
#include <map>

#include "analyzer/facts/held_memory.h"
#include "gui/session/column_text.h"
#include "gui/timeline/display_text.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {
namespace {

using store::Statement;

constexpr size_t kMostCurves = 64;  // of a rank; a damaged file may name any number

// The rows of a table that are the rank's; false where it has none.
bool bindRows(store::TraceReader& reader, const char* table, int32_t rank, Statement& rows) {
    Statement extent(reader.database(), "SELECT first_id, last_id FROM extent WHERE table_name = ?1 AND rank = ?2");
    extent.bind(1, std::string_view(table)).bind(2, int64_t{rank});
    if (!extent.step() || extent.integer(1) < extent.integer(0)) return false;
    rows.bind(1, extent.integer(0)).bind(2, extent.integer(1));
    return true;
}

int64_t soundTime(int64_t ns) {
    return std::clamp(ns, -kFarthestNs, kFarthestNs);
}

void addLane(std::vector<Lane>& lanes, const std::string& label, Curve curve) {
    if (curve.empty()) return;
    curve.finish();
    Lane lane;
    lane.kind = LaneKind::counter;
    lane.label = label;
    lane.curve = std::move(curve);
    lanes.push_back(std::move(lane));
}

std::optional<double> deviceMemory(store::TraceReader& reader, int32_t rank) {
    Statement query(reader.database(),
                    "SELECT d.memory_bytes FROM rank r JOIN device d ON d.id = r.device_id WHERE r.rank = ?1");
    query.bind(1, int64_t{rank});
    if (!query.step() || query.isNull(0) || query.integer(0) <= 0) return std::nullopt;
    return static_cast<double>(query.integer(0));
}

void addAllocations(store::TraceReader& reader, const RunInfo& run, int32_t rank, std::vector<Lane>& lanes) {
    Statement rows(reader.database(),
                   "SELECT start_ns, free, bytes, name_id FROM allocation WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
    if (!bindRows(reader, "allocation", rank, rows)) return;
    Curve curve(CurveUnit::bytes);
    facts::HeldMemory held;
    while (rows.step()) {
        const auto name = static_cast<uint64_t>(rows.integer(3));
        const auto bytes = rows.isNull(2) ? std::nullopt : std::optional(rows.integer(2));
        if (name < run.strings.size() && held.take(run.strings[name], rows.integer(1) != 0, bytes))
            curve.add(soundTime(rows.integer(0)), static_cast<double>(held.bytes()));
    }
    if (const auto limit = deviceMemory(reader, rank)) curve.setLimit(*limit);
    addLane(lanes, "memory, by cudaMalloc", std::move(curve));
}

void addHealth(store::TraceReader& reader, int32_t rank, std::vector<Lane>& lanes) {
    struct Reading {
        const char* label;
        CurveUnit unit;
        int value, limit;  // columns; limit -1: none
        double scale;
    };
    enum : int { kTime, kClock, kMostClock, kPower, kMostPower, kTemperature, kMemory, kAllMemory, kUtilization };
    constexpr std::array<Reading, 5> kReadings{
        Reading{"SM clock, by NVML", CurveUnit::megahertz, kClock, kMostClock, 1},
        Reading{"power, by NVML", CurveUnit::watts, kPower, kMostPower, 1e-3},
        Reading{"temperature, by NVML", CurveUnit::celsius, kTemperature, -1, 1},
        Reading{"memory used, by NVML", CurveUnit::bytes, kMemory, kAllMemory, 1},
        Reading{"device busy, by NVML", CurveUnit::percent, kUtilization, -1, 1}};
    if (!reader.hasTable("device_health")) return;
    Statement rows(reader.database(),
                   "SELECT time_ns, sm_mhz, sm_max_mhz, power_mw, power_limit_mw, temperature_c, memory_used_bytes, "
                   "memory_total_bytes, utilization_percent FROM device_health WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
    if (!bindRows(reader, "device_health", rank, rows)) return;
    std::array<Curve, kReadings.size()> curves;
    for (size_t i = 0; i < kReadings.size(); ++i) curves[i] = Curve(kReadings[i].unit);
    while (rows.step()) {
        if (rows.isNull(kTime)) continue;
        for (size_t i = 0; i < kReadings.size(); ++i) {
            const Reading& reading = kReadings[i];
            if (rows.isNull(reading.value)) continue;
            curves[i].add(soundTime(rows.integer(kTime)),
                          static_cast<double>(rows.integer(reading.value)) * reading.scale);
            if (reading.limit >= 0 && !rows.isNull(reading.limit))
                curves[i].setLimit(static_cast<double>(rows.integer(reading.limit)) * reading.scale);
        }
    }
    for (size_t i = 0; i < kReadings.size(); ++i) addLane(lanes, kReadings[i].label, std::move(curves[i]));
}

CurveUnit unitOf(const std::string& name) {
    if (name.find("[bytes]") != std::string::npos) return CurveUnit::bytes;
    if (name.find("%]") != std::string::npos) return CurveUnit::percent;
    if (name.find("[MHz]") != std::string::npos) return CurveUnit::megahertz;
    return CurveUnit::number;
}

void addSampled(store::TraceReader& reader, const RunInfo& run, int32_t rank, std::vector<Lane>& lanes) {
    if (!reader.hasTable("counter")) return;
    Statement rows(reader.database(),
                   "SELECT time_ns, name_id, value FROM counter WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
    if (!bindRows(reader, "counter", rank, rows)) return;
    std::map<int64_t, Curve> curves;
    while (rows.step()) {
        const int64_t name = rows.integer(1);
        if (!curves.contains(name)) {
            if (curves.size() == kMostCurves) continue;
            curves.emplace(name, Curve(unitOf(stringText(run, name))));
        }
        curves[name].add(soundTime(rows.integer(0)), static_cast<double>(rows.integer(2)));
    }
    for (auto& [name, curve] : curves) addLane(lanes, displayText(stringText(run, name)), std::move(curve));
}

}  // namespace

std::vector<Lane> loadCounters(store::TraceReader& reader, const RunInfo& run, int32_t rank) {
    std::vector<Lane> lanes;
    addAllocations(reader, run, rank, lanes);
    addHealth(reader, rank, lanes);
    addSampled(reader, run, rank, lanes);
    return lanes;
}

}  // namespace rankscope::gui
