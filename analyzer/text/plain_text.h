// SPDX-License-Identifier: Apache-2.0
// Names come from jobs: kernels, ranges, hosts and files may hold any bytes. Every format first makes text of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::text {

/// Valid UTF-8 that XML 1.0, HTML and JSON can hold: invalid bytes, control characters other than tab and newline,
/// controls of the writing direction, and noncharacters become U+FFFD.
std::string plainText(std::string_view bytes);

/// As plainText(), on one line: what would break it becomes a space.
std::string oneLine(std::string_view bytes);

/// At most `most` bytes of a text, cut between characters, with an ellipsis where something was cut.
std::string shortened(std::string text, size_t most);

/// & < > " ' as character references: for XML and HTML, text and attributes alike. Makes plain text of it first.
std::string markupText(std::string_view bytes);

/// A text inside Markdown, on one line: nothing in it is markup, ends a table's cell, calls a person (@name) or becomes
/// a link. At most about `longest` bytes of it.
std::string markdownText(std::string_view bytes, size_t longest = 2000);

/// A word as a POSIX shell reads it back unchanged: itself where nothing in it means anything to a shell, else in
/// single quotes.
std::string shellWord(std::string_view word);

/// The same, in quotes whatever it holds: a value that is assigned.
std::string shellQuoted(std::string_view word);

/// A kernel's name as a person reads it: demangled, without its return type and parameters, cut to `longest`
/// characters. A name that is not mangled is only cut.
std::string readableKernelName(std::string_view name, size_t longest = 80);

}  // namespace rankscope::text
