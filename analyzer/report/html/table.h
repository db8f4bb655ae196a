// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankscope::report::html {

struct Column {
    std::string title;
    bool isNumber = false;
    bool isBar = false;  // cells are drawings or folded text; not sorted by
};

struct Cell {
    std::string markup;
    std::optional<std::string> value;  // what it is sorted by; unknown without
};

Cell textCell(const std::string& text);
/// `text` is what is read, `value` what is sorted by and what the JSON says.
Cell numberCell(const std::string& text, double value);
Cell unknownCell();
/// Keeps text on one line: it is short by nature.
Cell unbrokenCell(const std::string& text);
Cell markupCell(std::string markup);

/// A table whose heads sort it by a click.
class Table {
  public:
    Table(std::string id, std::vector<Column> columns);
    void add(const std::vector<Cell>& row);
    std::string markup() const;

  private:
    std::string m_id;
    std::vector<Column> m_columns;
    std::string m_body;
};

}  // namespace rankscope::report::html
