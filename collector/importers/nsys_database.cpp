// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/nsys_database.h"

#include <algorithm>

#include "collector/importers/import_error.h"

namespace rankscope::collector {

namespace {

// A text or blob of an export is a name or a payload; pieces of files that it also holds are not read.
// A larger value is read to know its length, and dropped.
constexpr int kMostBytesOfAValue = 16 << 20;

/// SQL for a value unless it is too large, and for whether it is.
std::string unlessTooLarge(const std::string& column) {
    return "CASE WHEN length(" + column + ") <= " + std::to_string(kMostBytesOfAValue) + " THEN " + column + " END";
}
std::string isTooLarge(const std::string& column) {
    return "ifnull(length(" + column + ") > " + std::to_string(kMostBytesOfAValue) + ", 0)";
}

/// False for a declared type that makes its values numbers (SQLite's rules of affinity); true for others and none.
bool holdsText(std::string type) {
    std::ranges::transform(type, type.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    return std::ranges::none_of(std::initializer_list<const char*>{"INT", "REAL", "FLOA", "DOUB", "NUM"},
                                [&](const char* number) { return type.find(number) != std::string::npos; });
}

/// An export stays as it is, and may lie where nothing can be written; a log or journal beside it holds a part of it.
store::Database opened(const std::filesystem::path& file) {
    std::error_code ignored;
    const std::filesystem::path real = std::filesystem::canonical(file, ignored);  // SQLite looks beside that, too
    const auto isBeside = [&](const char* ending) {
        return std::filesystem::exists((real.empty() ? file : real).string() + ending, ignored);
    };
    try {
        return {file.string(),
                isBeside("-wal") || isBeside("-journal") ? store::OpenMode::readOnly : store::OpenMode::immutable};
    } catch (const store::Error& error) {
        throw ImportError(file, 0, error.cause(), error.hint());
    }
}

/// Only names that need no quotes are asked for: a table is named by whoever made the file.
bool isPlainName(std::string_view name) {
    for (const char c : name)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
    return !name.empty();
}

}  // namespace

NsysDatabase::NsysDatabase(const std::filesystem::path& file) : m_file(file), m_database(opened(file)) {
    try {
        // Virtual tables and views have no page of their own.
        store::Statement tables(m_database, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
        while (tables.step())
            if (isPlainName(tables.text(0))) m_columns.emplace(tables.text(0), std::map<std::string, bool>());
        bool idIsKey = false;
        for (auto& [table, names] : m_columns) {
            store::Statement columns(m_database, "SELECT name, pk, type FROM pragma_table_info('" + table + "')");
            while (columns.step()) {
                names.emplace(columns.text(0), holdsText(std::string(columns.text(2))));
                if (table == "StringIds" && columns.text(0) == "id" && columns.integer(1) == 1 &&
                    columns.text(2) == "INTEGER")
                    idIsKey = true;  // the key of the table's tree: found without reading all
            }
        }
        const bool strings = has("StringIds") && m_columns["StringIds"].count("value") > 0;
        if (strings && idIsKey) {
            m_string.emplace(m_database, "SELECT " + unlessTooLarge("value") + ", " + isTooLarge("value") +
                                             " FROM StringIds WHERE id = ?1");
        } else if (strings && m_columns["StringIds"].count("id") > 0) {
            store::Statement all(
                m_database, "SELECT id, " + unlessTooLarge("value") + ", " + isTooLarge("value") + " FROM StringIds");
            while (all.step()) {
                m_strings.emplace(all.integer(0), all.text(1));
                if (all.integer(2) != 0) m_largeStrings.insert(all.integer(0));
            }
        }
    } catch (const store::Error& error) {
        throw ImportError(file, 0, error.cause(),
                          "export the report of Nsight Systems again: nsys export --type sqlite FILE.nsys-rep");
    }
    if (has("meta") && has("nccl_call") && has("extent"))
        throw ImportError(file, 0, "this is a run of Rankscope itself", "analyze it: rankscope analyze FOLDER");
    for (const std::string& table : tables())
        if (table.starts_with("rocpd_"))
            throw ImportError(file, 0, "this is a database of rocprofv3 (rocpd); importing it is not supported yet",
                              "import the run's traces of torch.profiler");
    if (!has("StringIds") && !has("TARGET_INFO_GPU") && !has("ThreadNames"))
        throw ImportError(file, 0, "this SQLite database is no export of Nsight Systems: it has none of its tables",
                          "export a report: nsys export --type sqlite FILE.nsys-rep");
}

std::vector<std::string> NsysDatabase::tables() const {
    std::vector<std::string> names;
    for (const auto& [name, columns] : m_columns) names.push_back(name);
    return names;
}

std::string NsysDatabase::select(const std::string& table, std::initializer_list<const char*> columns) const {
    const std::map<std::string, bool>& known = m_columns.at(table);
    std::string sql = "SELECT ", tooLarge = "0";
    for (const char* name : columns) {
        const auto column = known.find(name);
        const std::string quoted = '"' + std::string(name) + '"';
        const bool isText = column != known.end() && column->second;
        sql += (column == known.end() ? "NULL" : isText ? unlessTooLarge(quoted) : quoted) + ", ";
        if (isText) tooLarge += " + " + isTooLarge(quoted);
    }
    return sql + tooLarge + " FROM " + table;
}

std::string_view NsysDatabase::string(int64_t id) {
    if (!m_string) {
        const auto known = m_strings.find(id);
        return known == m_strings.end() ? std::string_view() : known->second;
    }
    m_string->reset();
    m_string->bind(1, id);
    try {
        if (!m_string->step()) return {};
        if (m_string->integer(1) != 0) m_largeStrings.insert(id);
        return m_string->text(0);
    } catch (const store::Error&) {
        return {};  // a damaged page of texts: the rows stay, without their names
    }
}

std::string NsysDatabase::captured(const std::string& name) {
    std::string value;
    ImportLosses losses;  // a name more or less: nothing that anybody would miss
    forEach("META_DATA_CAPTURE", {"name", "value"}, losses, [&](const Row& row) {
        if (value.empty() && row.text(0) == name) value = row.text(1);
    });
    return value;
}

}  // namespace rankscope::collector
