// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "collector/store/sqlite.h"

namespace rankscope::gui::test {

/// Damages the rows of a trace.db as no writer would: values of other types, NULL, negative and huge numbers, 100 kB
/// names, control characters and direction marks, ids that name nothing or several things, columns exchanged, rows
/// gone, tables gone. The same seed damages the same file alike.
class RowDamage {
  public:
    explicit RowDamage(unsigned seed) : m_random(seed) {}

    void apply(const std::filesystem::path& file);
    /// What was done, as SQL.
    const std::string& story() const noexcept { return m_story; }

  private:
    struct Table {
        std::string name;
        std::vector<std::string> columns;
    };

    static std::vector<Table> tablesOf(store::Database& database);
    std::string statement(const Table& table);
    std::string loosened(const Table& table) const;
    std::string where(const Table& table, const std::string& column);
    size_t below(size_t count) { return m_random() % count; }
    template <typename Values>
    const auto& oneOf(const Values& values) {
        return values[below(std::size(values))];
    }

    std::mt19937 m_random;
    std::string m_story;
};

}  // namespace rankscope::gui::test
