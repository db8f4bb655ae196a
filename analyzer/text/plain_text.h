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

}  // namespace rankscope::text
