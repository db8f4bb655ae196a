// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/facts/held_memory.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using store::Statement;

void keepMost(std::optional<int64_t>& most, const Statement& row, int column) {
    if (row.isNull(column) || row.integer(column) <= 0) return;
    most = std::max(most.value_or(0), row.integer(column));
}

void takePeaks(const facts::MemoryPeaks& peaks, MemoryRow& row) {
    if (peaks.held > 0) row.heldBytes = peaks.held;
    if (peaks.sampled > 0) row.sampledBytes = peaks.sampled;
}

void readDevices(store::TraceReader& reader, std::map<int32_t, MemoryRow>& rows) {
    Statement devices(reader.database(),
                      "SELECT r.rank, d.memory_bytes FROM rank r JOIN device d ON d.id = r.device_id");
    while (devices.step()) keepMost(rows[static_cast<int32_t>(devices.integer(0))].deviceBytes, devices, 1);
    if (!reader.hasTable("device_health")) return;
    Statement health(reader.database(),
                     "SELECT rank, max(memory_used_bytes), max(memory_total_bytes) FROM device_health GROUP BY rank");
    while (health.step()) {
        MemoryRow& row = rows[static_cast<int32_t>(health.integer(0))];
        keepMost(row.usedBytes, health, 1);
        keepMost(row.deviceBytes, health, 2);
    }
}

}  // namespace

std::vector<MemoryRow> readMemory(store::TraceReader& reader, const job::Analysis& analysis) {
    std::map<int32_t, MemoryRow> rows;
    readDevices(reader, rows);
    for (const facts::RankSummary& rank : analysis.ranks) takePeaks(rank.memory, rows[rank.rank]);
    for (const auto& [rank, peaks] : analysis.memoryOfOthers) takePeaks(peaks, rows[rank]);
    std::vector<MemoryRow> known;
    for (auto& [rank, row] : rows) {
        row.rank = rank;
        if (peakOf(row)) known.push_back(row);
    }
    return known;
}

std::optional<int64_t> peakOf(const MemoryRow& row) {
    std::optional<int64_t> peak;
    for (const std::optional<int64_t>& bytes : {row.heldBytes, row.usedBytes, row.sampledBytes})
        if (bytes) peak = std::max(peak.value_or(0), *bytes);
    return peak;
}

std::optional<int64_t> marginOf(const MemoryRow& row) {
    const std::optional<int64_t> peak = peakOf(row);
    return peak && row.deviceBytes ? std::optional(*row.deviceBytes - *peak) : std::nullopt;
}

std::string_view sourceOf(const MemoryRow& row) {
    const std::optional<int64_t> peak = peakOf(row);
    if (!peak) return "";
    return row.usedBytes == peak ? "NVML" : row.heldBytes == peak ? "cudaMalloc" : "the trace";
}

std::string memoryText(const std::vector<MemoryRow>& rows) {
    const MemoryRow* nearest = nullptr;
    for (const MemoryRow& row : rows)
        if (const auto margin = marginOf(row); margin && (!nearest || *margin < *marginOf(*nearest))) nearest = &row;
    const auto bytes = [](int64_t count) { return text::bytesText(static_cast<double>(count)); };
    if (nearest)
        return fmt::format("memory: rank {} comes nearest to its device's limit, {} of {} by {}, {} left",
                           nearest->rank, bytes(*peakOf(*nearest)), bytes(*nearest->deviceBytes), sourceOf(*nearest),
                           bytes(std::max<int64_t>(0, *marginOf(*nearest))));
    const auto most = std::ranges::max_element(rows, {}, peakOf);
    if (most == rows.end()) return {};
    std::vector<int> ranks;
    for (const MemoryRow& row : rows)
        if (peakOf(row) == peakOf(*most)) ranks.push_back(row.rank);
    return fmt::format("memory: {} hold{} most, {}{} by {}; how much the device has is unknown", text::ranksText(ranks),
                       ranks.size() == 1 ? "s" : "", bytes(*peakOf(*most)), ranks.size() == 1 ? "" : " each",
                       sourceOf(*most));
}

}  // namespace rankscope::report
