// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gui/row_damage.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace rankscope::gui::test {
namespace {

constexpr std::array kValues{"NULL",
                             "-1",
                             "0",
                             "1",
                             "7",
                             "2147483648",
                             "4294967296",
                             "4611686018427387904",
                             "-4611686018427387904",
                             "9223372036854775807",
                             "-9223372036854775808",
                             "1.5",
                             "9e999",
                             "-9e999",
                             "'text'",
                             "''",
                             "x'00ff80'",
                             "zeroblob(5000)",
                             "printf('%.*c', 100000, 'n')",
                             "char(8238, 7, 10, 1513, 1500) || '<b>bold</b>'",
                             "'_ZN' || printf('%.*c', 3000, 'I')",
                             "'{\"ranks\": [1e99, {}], \"evidence\": 3}'"};

}  // namespace

void RowDamage::apply(const std::filesystem::path& file) {
    store::Database database(file.string(), store::OpenMode::readWrite);
    database.execute(
        "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF; PRAGMA "
        "journal_mode = MEMORY");
    const std::vector<Table> tables = tablesOf(database);
    const auto execute = [&](const std::string& sql) {
        m_story += sql + ";\n";
        try {
            database.execute(sql);
        } catch (const std::exception&) {
            // What the file itself forbids cannot be in it.
        }
    };
    for (size_t i = below(4); i > 0; --i) execute(loosened(oneOf(tables)));
    for (size_t i = 1 + below(25); i > 0; --i) execute(statement(oneOf(tables)));
}

std::vector<RowDamage::Table> RowDamage::tablesOf(store::Database& database) {
    std::vector<Table> tables;
    store::Statement names(
        database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name");
    while (names.step()) {
        Table table{std::string(names.text(0)), {}};
        store::Statement columns(database,
                                 fmt::format("SELECT name FROM pragma_table_info('{}') ORDER BY cid", table.name));
        while (columns.step()) table.columns.emplace_back(columns.text(0));
        store::Statement any(database, fmt::format("SELECT EXISTS (SELECT 1 FROM \"{}\")", table.name));
        if (any.step() && any.integer(0) != 0) tables.push_back(std::move(table));
    }
    return tables;
}

// Without types, keys and NOT NULL, so that everything can be written into it.
std::string RowDamage::loosened(const Table& table) const {
    return fmt::format(
        "CREATE TABLE loosened AS SELECT * FROM \"{0}\"; DROP TABLE \"{0}\"; ALTER TABLE loosened RENAME TO \"{0}\"",
        table.name);
}

std::string RowDamage::where(const Table& table, const std::string& column) {
    if (below(3) == 0) return "";
    return fmt::format(" WHERE \"{0}\" IN (SELECT \"{0}\" FROM \"{1}\" LIMIT {2} OFFSET {3})", column, table.name,
                       1 + below(3), below(8));
}

std::string RowDamage::statement(const Table& table) {
    const std::string& column = oneOf(table.columns);
    const auto set = [&](const std::string& value) {
        return fmt::format("UPDATE OR REPLACE \"{}\" SET \"{}\" = {}{}", table.name, column, value,
                           where(table, column));
    };
    switch (below(16)) {
        case 0:
            return set(fmt::format("-\"{}\"", column));
        case 1:
            return set(fmt::format("\"{}\" + 1000000", column));
        case 2:
            return set(fmt::format("\"{}\" * 1000003", column));
        case 3:
            return set(fmt::format("\"{}\"", oneOf(table.columns)));
        case 4:
            return set(fmt::format("CAST(\"{}\" AS {})", column, below(2) == 0 ? "TEXT" : "BLOB"));
        case 5:
            return fmt::format("INSERT OR IGNORE INTO \"{0}\" SELECT * FROM \"{0}\"",
                               table.name);  // ids twice, where the table is loosened
        case 6:
            return fmt::format("DELETE FROM \"{}\"{}", table.name, where(table, column));
        case 7:
            return below(8) == 0 ? fmt::format("DROP TABLE \"{}\"", table.name) : set("0");
        case 8:
            return below(8) == 0 ? fmt::format("ALTER TABLE \"{}\" RENAME COLUMN \"{}\" TO other", table.name, column)
                                 : set("2000000");
        default:
            return set(oneOf(kValues));
    }
}

}  // namespace rankscope::gui::test
