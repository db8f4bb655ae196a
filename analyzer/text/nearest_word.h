// SPDX-License-Identifier: Apache-2.0
// What a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope::text {

/// Returns the known word that differs least from `word`, the first of several; empty where none is near enough to have
/// been meant. Letters left out, put in, changed or exchanged with their neighbour count, one in three at most.
std::string nearestWord(std::string_view word, const std::vector<std::string>& known);

/// Returns "did you mean NEAREST? ", or nothing where no word is near.
std::string didYouMean(std::string_view word, const std::vector<std::string>& known);

}  // namespace rankscope::text
