// SPDX-License-Identifier: Apache-2.0
// An SQLite export of Nsight Systems as a source of rows. Its tables and their columns differ from version to version,
// and tables without rows are left out ("lazy" export): what is missing reads as NULL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/store/error.h"
#include "collector/store/sqlite.h"

namespace rankscope::collector {

class NsysDatabase {
  public:
    /// Throws ImportError for what is no database, or none of Nsight Systems.
    explicit NsysDatabase(const std::filesystem::path& file);

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

    /// Calls `visit` with each row of a table, in the order of the file; not at all without the table. Where the table
    /// is damaged, what stands in front of that is read, and the rest is a loss. Returns the number of rows.
    template <typename Visit>
    uint64_t forEach(const std::string& table, std::initializer_list<const char*> columns, ImportLosses& losses,
                     Visit visit) {
        if (!has(table)) return 0;
        uint64_t rows = 0;
        try {
            store::Statement statement(m_database, select(table, columns));
            const Row row(statement);
            for (; statement.step(); ++rows) visit(row);
        } catch (const store::Error& error) {
            losses.add("torn_tail", "error", std::nullopt,
                       table + " is damaged behind its row " + std::to_string(rows) + ": " + error.cause());
        }
        return rows;
    }

    /// The text of an id of StringIds; empty for an unknown one. Valid until the next call.
    std::string_view string(int64_t id);

    /// The value of META_DATA_CAPTURE by name; the first where there are several, empty where there is none.
    std::string captured(const std::string& name);

  private:
    std::string select(const std::string& table, std::initializer_list<const char*> columns) const;

    std::filesystem::path m_file;
    store::Database m_database;
    std::map<std::string, std::set<std::string>> m_columns;  // by table
    std::optional<store::Statement> m_string;                // where ids are keys
    std::unordered_map<int64_t, std::string> m_strings;      // where they are none
};

}  // namespace rankscope::collector
