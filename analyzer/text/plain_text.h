// SPDX-License-Identifier: Apache-2.0
// Names come from jobs: kernels, ranges, hosts and files may hold any bytes. Every format first makes text of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::text {

/// Makes valid UTF-8 that XML 1.0, HTML and JSON can hold: invalid bytes, control characters other than tab and
/// newline, controls of the writing direction, and noncharacters become U+FFFD.
std::string plainText(std::string_view bytes);

/// Does as plainText(), on one line: what would break it becomes a space.
std::string oneLine(std::string_view bytes);

/// Cuts a text to at most `most` bytes, between characters, with an ellipsis where something was cut.
std::string shortened(std::string text, size_t most);

/// Makes plain text of it, with & < > " ' as character references: for XML and HTML, text and attributes alike.
std::string markupText(std::string_view bytes);

/// Makes a text for Markdown, on one line: nothing in it is markup, ends a table's cell, calls a person (@name) or
/// becomes a link. It has at most about `longest` bytes.
std::string markdownText(std::string_view bytes, size_t longest = 2000);

/// Cuts a Markdown document to what a step summary of GitHub takes (1 MiB), at the end of a line, with a sentence that
/// says so.
std::string cutForSummary(std::string document);

/// Writes a word so that a POSIX shell reads it back unchanged: in single quotes where something in it means anything
/// to a shell.
std::string shellWord(std::string_view word);

/// Does the same, in quotes whatever the word holds: for a value that is assigned.
std::string shellQuoted(std::string_view word);

/// Makes a kernel's name readable: demangled, without its return type and parameters, cut to `longest` characters. A
/// name that is not mangled is only cut.
std::string readableKernelName(std::string_view name, size_t longest = 80);

}  // namespace rankscope::text
