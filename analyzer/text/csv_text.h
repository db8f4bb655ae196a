// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rankscope::text {

/// Writes a text as a field of a CSV line (RFC 4180): plainText(), in quotes where it needs them. What begins as a
/// formula of a spreadsheet, with `=`, `+`, `-`, `@` or a tab, gets a `'` in front: it would be run.
std::string csvText(std::string_view bytes);

}  // namespace rankscope::text
