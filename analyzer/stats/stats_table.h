// SPDX-License-Identifier: Apache-2.0
// Tables of statistics, of whatever columns, and how they are written.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rankscope::stats {

/// A column's name ends with its unit: "sum_ns", "bytes", "share". "_us" and "_pctg" are microseconds and percent.
struct StatsTable {
    using Cell = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: unknown

    std::string name;   ///< a JSON key: "kernels"
    std::string title;  ///< for people: "GPU kernels"
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
    size_t leftOut = 0;  ///< rows that --top left out
};

/// Writes them for people; `width` is that of the terminal.
void writeText(const std::vector<StatsTable>& tables, size_t width, std::ostream& out);

/// Writes one table after the other, each with a line of its column names; the first column is the table's name.
void writeCsv(const std::vector<StatsTable>& tables, std::ostream& out);

/// Writes {"schema": "rankscope.stats/1", "run": NAME, "tables": {NAME: [{COLUMN: ...}]}}.
void writeJson(const std::vector<StatsTable>& tables, const std::string& run, std::ostream& out);

}  // namespace rankscope::stats
