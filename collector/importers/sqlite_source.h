// SPDX-License-Identifier: Apache-2.0
// Another tool's SQLite file as a source of rows. Its tables and their columns differ from version to version, and
// tables without rows may be left out: what is missing reads as NULL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/store/error.h"
#include "collector/store/sqlite.h"

namespace rankscope::collector {

class SqliteSource {
  public:
    /// The file stays as it is, also where SQLite would undo what its writer has not ended: that is a loss. Throws
    /// ImportError for what is no database that can be read, with this hint, and for a run of Rankscope itself.
    SqliteSource(const std::filesystem::path& file, const std::string& hint);

    bool has(const std::string& table) const { return m_columns.count(table) > 0; }
    std::vector<std::string> tables() const;

    /// One row of a forEach(); columns count from 0 as they were asked for.
    class Row {
      public:
        explicit Row(store::Statement& statement) : m_statement(statement) {}
        /// NULL for what is no integer.
        std::optional<int64_t> integer(int column) const {
            if (!m_statement.isInteger(column)) return std::nullopt;
            return m_statement.integer(column);
        }
        /// Texts and blobs as they are, valid until the next row; empty for NULL.
        std::string_view text(int column) const { return m_statement.text(column); }

      private:
        store::Statement& m_statement;
    };

    bool hasRows(const std::string& table);

    /// Calls `visit` with each row of a table, in the order of the file; not at all without the table. Where the table
    /// is damaged, what stands in front of that is read, and the rest is a loss. Texts and blobs above 16 MiB read as
    /// NULL, and are counted in a loss. Returns the number of rows.
    template <typename Visit>
    uint64_t forEach(const std::string& table, std::initializer_list<const char*> columns, ImportLosses& losses,
                     Visit visit) {
        tellJournal(losses);
        if (!has(table)) return 0;
        uint64_t rows = 0;
        int64_t tooLarge = 0;
        try {
            store::Statement statement(m_database, select(table, columns));
            const Row row(statement);
            for (; statement.step(); ++rows) {
                visit(row);
                tooLarge += statement.integer(static_cast<int>(columns.size()));
            }
        } catch (const store::Error& error) {
            losses.add("torn_tail", "error", std::nullopt,
                       table + " is damaged behind its row " + std::to_string(rows) + ": " + error.cause());
        }
        if (tooLarge > 0)
            losses.add("bad_block", "warning", std::nullopt,
                       "texts and blobs of " + table + " that are too large are left out; their rows stay", tooLarge);
        return rows;
    }

  protected:
    /// SQL for a value unless it is too large, and for whether it is.
    static std::string unlessTooLarge(const std::string& column);
    static std::string isTooLarge(const std::string& column);

    std::filesystem::path m_file;
    bool m_hasJournal;  // of a writer that has not ended what it began; until it is told
    store::Database m_database;
    std::map<std::string, std::map<std::string, bool>> m_columns;  // by table: true for what holds texts or blobs

  private:
    /// Once.
    void tellJournal(ImportLosses& losses);
    /// Of a table: the columns as asked for, and how many values of the row are too large.
    std::string select(const std::string& table, std::initializer_list<const char*> columns) const;
};

}  // namespace rankscope::collector
