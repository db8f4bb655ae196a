// SPDX-License-Identifier: Apache-2.0
// An SQLite file in which some values are others than its writer puts there: each choice names a table, a column, rows
// and a value.
#pragma once

#include <string>
#include <vector>

#include "collector/store/error.h"
#include "collector/store/sqlite.h"
#include "tests/fuzz/fuzz_input.h"

namespace rankscope::fuzz {

class RowEdits {
  public:
    /// Of the tables and columns of `whole`, which stays as it is.
    explicit RowEdits(const std::filesystem::path& whole) : m_whole(whole) {
        store::Database database(whole.string(), store::OpenMode::readOnly);
        store::Statement columns(database,
                                 "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE "
                                 "m.type = 'table' ORDER BY m.rowid, c.cid");
        while (columns.step()) m_columns.emplace_back(columns.text(0), columns.text(1));
    }

    /// Makes `file` a copy with the changes that an input asks for, at most 16.
    void apply(Choices choices, const std::filesystem::path& file) const {
        std::filesystem::copy_file(m_whole, file, std::filesystem::copy_options::overwrite_existing);
        store::Database database(file.string(), store::OpenMode::readWrite);
        database.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
        for (int i = 0; i < 16 && !choices.isEmpty(); ++i) {
            const auto& [table, column] = m_columns[choices.byte() % m_columns.size()];
            const int kind = choices.byte() % 7;
            const std::string rows = " WHERE rowid % 4 <= " + std::to_string(choices.byte() % 4);
            try {
                if (kind == 6) {
                    database.execute("DELETE FROM " + table);
                    continue;
                }
                store::Statement change(database, "UPDATE OR IGNORE " + table + " SET " + column + " = ?1" + rows);
                switch (kind) {
                    case 0:
                        change.bindNull(1);
                        break;
                    case 1:
                        change.bind(1, choices.number());
                        break;
                    case 2:
                        change.bind(1, static_cast<int64_t>(choices.byte()) - 4);
                        break;
                    case 3: {
                        double value = 0;
                        const int64_t bits = choices.number();
                        std::memcpy(&value, &bits, sizeof value);
                        change.bind(1, value);
                        break;
                    }
                    default:
                        change.bind(1, choices.text(choices.byte()));
                }
                change.run();
            } catch (const store::Error&) {  // the schema does not allow it
            }
        }
    }

  private:
    std::filesystem::path m_whole;
    std::vector<std::pair<std::string, std::string>> m_columns;
};

}  // namespace rankscope::fuzz
