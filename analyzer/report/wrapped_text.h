// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::report {

/// Columns of a report on a terminal.
inline constexpr size_t kTextColumns = 120;

/// Lines of at most `columns` characters, broken at spaces; the first begins with `first`, the others with as many
/// spaces. A word that is longer stays whole. Ends with a newline.
std::string wrapped(std::string_view text, std::string_view first = {}, size_t columns = kTextColumns);

}  // namespace rankscope::report
