// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::text {

/// A text inside Markdown, on one line: nothing in it is markup, ends a table's cell, calls a person (@name) or becomes
/// a link. At most about `longest` bytes of it.
std::string markdownText(std::string_view bytes, size_t longest = 2000);

/// A document that a step summary of GitHub takes (1 MiB): cut at the end of a line, with a sentence that says so.
std::string cutForSummary(std::string document);

}  // namespace rankscope::text
