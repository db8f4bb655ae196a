// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/html/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzer/text/plain_text.h"

namespace rankscope::report::html {

Cell textCell(const std::string& text) {
    // A short word is never broken; a long one is where it must be, so that it does not push the others out of sight.
    constexpr size_t kLongWord = 24;
    size_t longest = 0, word = 0;
    for (const char c : text) {
        word = c == ' ' ? 0 : word + 1;
        longest = std::max(longest, word);
    }
    const std::string markup = text::markupText(text);
    return {longest > kLongWord ? "<span class=\"long\">" + markup + "</span>" : markup, text};
}

Cell numberCell(const std::string& text, double value) {
    if (!std::isfinite(value)) return unknownCell();
    return {text::markupText(text), value == std::round(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                                         : fmt::format("{}", value)};
}

Cell unknownCell() {
    return {"unknown", std::nullopt};
}

Cell unbrokenCell(const std::string& text) {
    return {"<span class=\"unbroken\">" + text::markupText(text) + "</span>", text};
}

Cell markupCell(std::string markup) {
    return {std::move(markup), std::nullopt};
}

Table::Table(std::string id, std::vector<Column> columns) : m_id(std::move(id)), m_columns(std::move(columns)) {}

void Table::add(const std::vector<Cell>& row) {
    m_body += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
        const char* kind = m_columns[i].isBar ? " class=\"bar\"" : m_columns[i].isNumber ? " class=\"number\"" : "";
        m_body += fmt::format("<td{}{}>{}</td>", kind,
                              row[i].value ? fmt::format(" data-v=\"{}\"", text::markupText(*row[i].value)) : "",
                              row[i].markup);
    }
    m_body += "</tr>\n";
}

std::string Table::markup() const {
    std::string out = fmt::format("<div class=\"scroll\"><table id=\"{}\">\n", m_id);
    out += "<thead><tr>";
    for (const Column& column : m_columns) {
        const std::string title = text::markupText(column.title);
        out += column.isBar ? fmt::format("<th scope=\"col\">{}</th>", title)
                            : fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                                          column.isNumber ? " class=\"number\"" : "", title);
    }
    return out + "</tr></thead>\n<tbody>\n" + m_body + "</tbody></table></div>\n";
}

}  // namespace rankscope::report::html
