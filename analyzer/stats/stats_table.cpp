// SPDX-License-Identifier: Apache-2.0
#include "analyzer/stats/stats_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "analyzer/text/csv_text.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::stats {
namespace {

using Cell = StatsTable::Cell;

double numberOf(const Cell& cell) {
    return std::holds_alternative<int64_t>(cell) ? static_cast<double>(std::get<int64_t>(cell))
                                                 : std::get<double>(cell);
}

std::string cellText(const std::string& column, const Cell& cell) {
    if (std::holds_alternative<std::monostate>(cell)) return "unknown";
    if (const auto* text = std::get_if<std::string>(&cell))
        return text::oneLine(text::readableKernelName(*text, std::numeric_limits<size_t>::max()));
    if (column.ends_with("_ns")) return text::durationText(numberOf(cell));
    if (column.ends_with("bytes")) return text::bytesText(numberOf(cell));
    if (column == "share") return text::percentText(numberOf(cell));
    if (const auto* number = std::get_if<int64_t>(&cell)) return std::to_string(*number);
    return fmt::format("{:.6g}", std::get<double>(cell));
}

/// What people read above a column: without the unit that its values have with them.
std::string headOf(const std::string& column) {
    constexpr std::string_view kUnit = "_ns";
    return column.ends_with(kUnit) ? column.substr(0, column.size() - kUnit.size()) : column;
}

std::string csvCell(const Cell& cell) {
    if (std::holds_alternative<std::monostate>(cell)) return {};
    if (const auto* number = std::get_if<int64_t>(&cell)) return std::to_string(*number);
    if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
    return text::csvText(std::get<std::string>(cell));
}

}  // namespace

void writeText(const std::vector<StatsTable>& tables, size_t width, std::ostream& out) {
    bool isFirst = true;
    for (const StatsTable& table : tables) {
        if (table.rows.empty()) continue;
        out << (isFirst ? "" : "\n") << table.title << '\n';
        isFirst = false;
        std::vector<std::vector<std::string>> lines(table.rows.size() + 1);
        for (const std::string& column : table.columns) lines[0].push_back(headOf(column));
        for (size_t i = 0; i < table.rows.size(); ++i)
            for (size_t c = 0; c < table.columns.size(); ++c)
                lines[i + 1].push_back(cellText(table.columns[c], table.rows[i][c]));
        std::vector<size_t> widths(table.columns.size(), 0);
        for (const auto& line : lines)
            for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
        // Numbers first, right-justified; the widest column of text is the last and has what is left of the line.
        std::vector<size_t> order;
        for (size_t c = 0; c < table.columns.size(); ++c)
            if (std::ranges::all_of(table.rows,
                                    [c](const auto& row) { return !std::holds_alternative<std::string>(row[c]); }))
                order.push_back(c);
        const size_t numbers = order.size();
        for (size_t c = 0; c < table.columns.size(); ++c)
            if (std::ranges::find(order, c) == order.end()) order.push_back(c);
        const auto firstText = order.begin() + static_cast<ptrdiff_t>(numbers);
        const auto widest = std::ranges::max_element(firstText, order.end(), {}, [&](size_t c) { return widths[c]; });
        if (widest != order.end()) std::rotate(widest, widest + 1, order.end());
        for (const auto& line : lines) {
            std::string text = " ";
            for (const size_t c : order) {
                const bool isText = std::ranges::any_of(
                    table.rows, [c](const auto& row) { return std::holds_alternative<std::string>(row[c]); });
                if (!isText) {
                    text += fmt::format(" {:>{}}", line[c], widths[c]);
                } else if (c != order.back()) {
                    text += fmt::format(" {:<{}}", line[c], widths[c]);
                } else {
                    const size_t left = width > text.size() + 20 ? width - text.size() - 1 : 20;
                    text += ' ' + text::shortened(line[c], left);
                }
            }
            while (text.ends_with(' ')) text.pop_back();
            out << text << '\n';
        }
        if (table.leftOut > 0) out << fmt::format("  and {} more (--top 0 lists all)\n", table.leftOut);
    }
    if (isFirst) out << "Nothing was recorded that could be counted.\n";
}

void writeCsv(const std::vector<StatsTable>& tables, std::ostream& out) {
    for (const StatsTable& table : tables) {
        out << "table";
        for (const std::string& column : table.columns) out << ',' << column;
        out << "\r\n";
        for (const auto& row : table.rows) {
            out << table.name;
            for (const Cell& cell : row) out << ',' << csvCell(cell);
            out << "\r\n";
        }
    }
}

void writeJson(const std::vector<StatsTable>& tables, const std::string& run, std::ostream& out) {
    nlohmann::ordered_json all{{"schema", "rankscope.stats/1"}, {"run", run}};
    nlohmann::ordered_json& written = all["tables"] = nlohmann::ordered_json::object();
    for (const StatsTable& table : tables) {
        nlohmann::ordered_json& rows = written[table.name] = nlohmann::ordered_json::array();
        for (const auto& row : table.rows) {
            nlohmann::ordered_json one;
            for (size_t c = 0; c < table.columns.size(); ++c) {
                nlohmann::ordered_json& cell = one[table.columns[c]];
                if (const auto* text = std::get_if<std::string>(&row[c]))
                    cell = *text;
                else if (const auto* number = std::get_if<int64_t>(&row[c]))
                    cell = *number;
                else if (const auto* real = std::get_if<double>(&row[c]))
                    cell = *real;
            }
            rows.push_back(std::move(one));
        }
    }
    out << text::jsonText(all);
}

}  // namespace rankscope::stats
