// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/csv_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/text/csv_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"
#include "collector/store/sqlite.h"

namespace rankscope::exports {

namespace {

/// Names of a query's only column.
std::vector<std::string> namesOf(store::Database& trace, const std::string& sql) {
    std::vector<std::string> names;
    store::Statement rows(trace, sql);
    while (rows.step()) names.emplace_back(rows.text(0));
    return names;
}

/// A number is written as it is: csvText would take one below 0 for a formula.
std::string fieldOf(std::string_view value) {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool isNumber = error == std::errc() && end == value.data() + value.size();
    return isNumber ? std::string(value) : text::csvText(value);
}

void writeTable(store::Database& trace, const std::string& table, std::ostream& out) {
    const std::vector<std::string> columns =
        namesOf(trace, "SELECT name FROM pragma_table_info('" + table + "') ORDER BY cid");
    const std::string names = text::joined(columns, ",");
    out << names << "\r\n";
    store::Statement rows(trace, "SELECT " + names + " FROM " + table);
    std::string line;
    while (rows.step()) {
        line.clear();
        for (int column = 0; column < static_cast<int>(columns.size()); ++column) {
            if (column > 0) line += ',';
            if (rows.isBytes(column))
                for (const uint8_t byte : rows.bytes(column)) line += fmt::format("{:02x}", byte);
            else if (!rows.isNull(column))
                line += fieldOf(rows.text(column));
        }
        out << line << "\r\n";
    }
}

}  // namespace

void writeCsvFolder(store::Database& trace, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    // A trace's tables are those of the schema, whose names need no quotes: others are refused where it is opened.
    for (const std::string& table : namesOf(
             trace, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")) {
        text::OutputFile file(folder / (table + ".csv"));
        writeTable(trace, table, file.stream());
        file.commit();
    }
}

}  // namespace rankscope::exports
