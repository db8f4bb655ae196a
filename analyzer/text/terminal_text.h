// SPDX-License-Identifier: Apache-2.0
// Text for terminals: in colour where they show it, in lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::text {

enum class Shade { plain, bold, dim, red, yellow, green, cyan, boldRed, boldGreen };

/// Shades text by escape sequences (ECMA-48), or leaves it as it is.
class Painter {
  public:
    explicit Painter(bool colour) : m_colour(colour) {}
    std::string operator()(Shade shade, std::string_view text) const;
    std::string bold(std::string_view text) const { return (*this)(Shade::bold, text); }
    bool hasColour() const { return m_colour; }

  private:
    bool m_colour;
};

/// What may go to a terminal: plainText(), with the shades of a Painter where `colour` allows them. Formats make text
/// of each name that they print; this stands behind all of them.
std::string terminalText(std::string_view text, bool colour);

/// Columns of a report on a terminal.
inline constexpr size_t kTextColumns = 120;

/// Breaks text into lines of at most `columns` characters, broken at spaces, but not between a number and its unit; the
/// first begins with `first`, the others with as many spaces. A word that is longer stays whole. Ends with a newline.
std::string wrapped(std::string_view text, std::string_view first = {}, size_t columns = kTextColumns);

/// Joins the words of commands by no-break spaces, so that wrapped() keeps them on a line: an option, the word in front
/// of it and the value behind it. withPlainSpaces() makes plain spaces of these again.
std::string withUnbrokenCommands(std::string_view text);
std::string withPlainSpaces(std::string text);

}  // namespace rankscope::text
