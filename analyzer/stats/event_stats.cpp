// SPDX-License-Identifier: Apache-2.0
#include "analyzer/stats/event_stats.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "analyzer/text/units.h"
#include "collector/store/sqlite.h"

namespace rankscope::stats {
namespace {

struct Group {
    std::vector<int64_t> durations;
    std::optional<int64_t> bytes = 0;  // unknown where those of one operation are
};

/// By rank, or -1 for all together, and name.
using Groups = std::map<std::pair<int64_t, std::string>, Group>;

constexpr const char* kCopyName =
    "CASE kind WHEN 1 THEN 'copy host to device' WHEN 2 THEN 'copy device to host' WHEN 8 THEN 'copy on the device' "
    "WHEN 9 THEN 'copy on the host' WHEN 10 THEN 'copy between devices' ELSE 'copy of kind ' || kind END || "
    "CASE WHEN src_memory = 1 OR dst_memory = 1 THEN ', pageable' WHEN src_memory = 2 OR dst_memory = 2 THEN ', "
    "pinned' "
    "ELSE '' END";

struct Section {
    const char *name, *title;
    std::string rows;  // SQL: rank, name, duration, bytes or NULL
    bool hasBytes = false;
};

std::vector<Section> sections() {
    return {
        {"kernels", "GPU kernels",
         "SELECT k.rank, s.text, k.dur_ns, NULL FROM kernel k JOIN string s ON s.id = k.name_id"},
        {"copies", "Copies and sets of device memory",
         std::string("SELECT rank, ") + kCopyName +
             ", dur_ns, bytes FROM memcpy UNION ALL SELECT rank, 'set', dur_ns, "
             "bytes FROM memset",
         true},
        {"nccl", "NCCL operations (waiting included)",
         // Calls of a group share a kernel: what it takes counts once, under the names of all.
         "SELECT c.rank, CASE WHEN count(*) = 1 THEN min(c.op) WHEN min(c.op) = max(c.op) THEN 'group: ' || min(c.op) "
         "WHEN count(DISTINCT c.op) = 2 THEN 'group: ' || min(c.op) || ' + ' || max(c.op) ELSE 'group: ' || min(c.op) "
         "|| ' and others' END, max(coalesce(k.dur_ns, c.dur_ns)), CASE WHEN count(c.bytes) = count(*) THEN "
         "sum(c.bytes) END FROM nccl_call c LEFT JOIN kernel k ON k.id = c.kernel_id GROUP BY c.rank, "
         "coalesce(c.kernel_id, -1 - c.id)",
         true},
        {"cuda_calls", "CUDA calls on the host",
         "SELECT a.rank, s.text, a.dur_ns, NULL FROM api_call a JOIN string s ON s.id = a.name_id"},
        {"nvtx", "NVTX ranges on the host",
         "SELECT n.rank, s.text, n.dur_ns, NULL FROM nvtx n JOIN string s ON s.id = n.name_id LEFT JOIN string d ON "
         "d.id = n.domain_id WHERE n.dur_ns IS NOT NULL AND coalesce(d.text, '') NOT IN ('cpu_op', 'python_function', "
         "'gpu_user_annotation')"},
    };
}

/// Of an even number the mean of the two in the middle.
int64_t medianOf(std::vector<int64_t>& durations) {
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::ranges::nth_element(durations, middle);
    if (durations.size() % 2 == 1) return *middle;
    return std::midpoint(*std::max_element(durations.begin(), middle), *middle);
}

/// Of durations, or of bytes: what no 64 bits hold is as much as they hold.
void addTo(int64_t& sum, int64_t value) {
    if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<int64_t>::max();
}

StatsTable tableOf(const Section& section, store::TraceReader& trace, const EventStatsOptions& options) {
    Groups groups;
    double total = 0;
    store::Statement rows(trace.database(), section.rows);
    while (rows.step()) {
        Group& group = groups[{options.perRank ? rows.integer(0) : -1, std::string(rows.text(1))}];
        group.durations.push_back(rows.integer(2));
        if (rows.isNull(3))
            group.bytes.reset();
        else if (group.bytes)
            addTo(*group.bytes, rows.integer(3));
        total += static_cast<double>(rows.integer(2));
    }
    StatsTable table{section.name, section.title, {}, {}, 0};
    if (options.perRank) table.columns.push_back("rank");
    for (const char* column : {"count", "sum_ns", "share", "median_ns", "min_ns", "max_ns"})
        table.columns.emplace_back(column);
    if (section.hasBytes) table.columns.emplace_back("bytes");
    table.columns.emplace_back("name");

    struct Sum {
        const std::pair<int64_t, std::string>* key;
        Group* group;
        int64_t ns;
    };
    std::vector<Sum> sums;
    for (auto& [key, group] : groups) {
        int64_t ns = 0;
        for (const int64_t duration : group.durations) addTo(ns, duration);
        sums.push_back({&key, &group, ns});
    }
    std::ranges::stable_sort(sums, std::ranges::greater{}, &Sum::ns);
    if (options.top > 0 && sums.size() > options.top) {
        table.leftOut = sums.size() - options.top;
        sums.resize(options.top);
    }
    for (const auto& [key, group, ns] : sums) {
        std::vector<int64_t>& durations = group->durations;
        const auto [least, most] = std::ranges::minmax(durations);
        std::vector<StatsTable::Cell> row;
        if (options.perRank) row.emplace_back(key->first);
        row.emplace_back(static_cast<int64_t>(durations.size()));
        row.emplace_back(ns);
        row.emplace_back(total > 0 ? static_cast<double>(ns) / total : 0.0);
        row.emplace_back(medianOf(durations));
        row.emplace_back(least);
        row.emplace_back(most);
        if (section.hasBytes) row.push_back(group->bytes ? StatsTable::Cell(*group->bytes) : std::monostate{});
        row.emplace_back(key->second);
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace

std::vector<StatsTable> eventStats(store::TraceReader& trace, const EventStatsOptions& options) {
    std::vector<StatsTable> tables;
    for (const Section& section : sections()) tables.push_back(tableOf(section, trace, options));
    return tables;
}

}  // namespace rankscope::stats
