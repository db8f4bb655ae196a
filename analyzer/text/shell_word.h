// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rankscope::text {

/// A word as a POSIX shell reads it back unchanged: itself where nothing in it means anything to a shell, else in
/// single quotes.
std::string shellWord(std::string_view word);

/// The same, in quotes whatever it holds: a value that is assigned.
std::string shellQuoted(std::string_view word);

}  // namespace rankscope::text
