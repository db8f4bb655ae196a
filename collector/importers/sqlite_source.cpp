// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/sqlite_source.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "collector/importers/import_error.h"

namespace rankscope::collector {

namespace {

// A text or blob is a name or a payload; pieces of files that may also stand there are not read.
// A larger value is read to know its length, and dropped.
constexpr int kMostBytesOfAValue = 16 << 20;

/// False for a declared type that makes its values numbers (SQLite's rules of affinity); true for others and none.
bool holdsText(std::string type) {
    std::ranges::transform(type, type.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    return std::ranges::none_of(std::initializer_list<const char*>{"INT", "REAL", "FLOA", "DOUB", "NUM"},
                                [&](const char* number) { return type.find(number) != std::string::npos; });
}

/// The file itself, where its name is a link: SQLite looks beside that for what belongs to it.
std::filesystem::path realPath(const std::filesystem::path& file) {
    std::error_code ignored;
    const std::filesystem::path real = std::filesystem::canonical(file, ignored);
    return real.empty() ? file : real;
}

/// A journal with pages in it: the writer was killed, or writes still. One that a writer is done with is empty, or
/// begins with zeros.
bool hasJournal(const std::filesystem::path& real) {
    const std::string name = real.string() + "-journal";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(name, ignored)) return false;
    std::ifstream journal(name, std::ios::binary);
    char first = 0;
    return !journal.get(first) ? std::filesystem::file_size(name, ignored) > 0 : first != 0;
}

/// A file stays as it is, and may lie where nothing can be written: it is read without a look beside it. A log beside
/// it (-wal) holds a part of it, and is read with it.
store::Database opened(const std::filesystem::path& file, bool hasJournal) {
    const std::string real = realPath(file).string();
    std::error_code ignored;
    const bool hasLog = !hasJournal && std::filesystem::exists(real + "-wal", ignored);
    try {
        store::Database database(real, hasLog ? store::OpenMode::readOnly : store::OpenMode::immutable);
        // Values may be as large as the file, and are read to know their length.
        sqlite3_limit(database.handle(), SQLITE_LIMIT_LENGTH, std::numeric_limits<int>::max());
        return database;
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

std::string SqliteSource::unlessTooLarge(const std::string& column) {
    return "CASE WHEN length(" + column + ") <= " + std::to_string(kMostBytesOfAValue) + " THEN " + column + " END";
}

std::string SqliteSource::isTooLarge(const std::string& column) {
    return "ifnull(length(" + column + ") > " + std::to_string(kMostBytesOfAValue) + ", 0)";
}

SqliteSource::SqliteSource(const std::filesystem::path& file, const std::string& hint)
    : m_file(file), m_hasJournal(hasJournal(realPath(file))), m_database(opened(file, m_hasJournal)) {
    try {
        // Virtual tables and views have no page of their own.
        store::Statement tables(m_database, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
        while (tables.step())
            if (isPlainName(tables.text(0))) m_columns.emplace(tables.text(0), std::map<std::string, bool>());
        for (auto& [table, names] : m_columns) {
            store::Statement columns(m_database, "SELECT name, type FROM pragma_table_info('" + table + "')");
            while (columns.step()) names.emplace(columns.text(0), holdsText(std::string(columns.text(1))));
        }
    } catch (const store::Error& error) {
        throw ImportError(file, 0, error.cause(), hint);
    }
    if (has("meta") && has("nccl_call") && has("extent"))
        throw ImportError(file, 0, "this is a run of Rankscope itself", "analyze it: rankscope analyze FOLDER");
}

void SqliteSource::tellJournal(ImportLosses& losses) {
    if (!m_hasJournal) return;
    m_hasJournal = false;
    losses.add("torn_tail", "error", std::nullopt,
               "a journal lies beside the database: its writer was interrupted, or writes still; what it had not "
               "ended is read as it stands in the file, which is left as it is");
}

std::vector<std::string> SqliteSource::tables() const {
    std::vector<std::string> names;
    for (const auto& [name, columns] : m_columns) names.push_back(name);
    return names;
}

bool SqliteSource::hasRows(const std::string& table) {
    if (!has(table)) return false;
    try {
        return store::Statement(m_database, "SELECT 1 FROM " + table + " LIMIT 1").step();
    } catch (const store::Error&) {
        return true;  // what is damaged is there
    }
}

std::string SqliteSource::select(const std::string& table, std::initializer_list<const char*> columns) const {
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

}  // namespace rankscope::collector
