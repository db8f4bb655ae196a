// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::cli {

// The known word that differs least from `word`; empty where none is near enough to have been meant: letters left out,
// put in, changed or exchanged, one in three at most.
std::string nearestWord(const std::string& word, const std::vector<std::string>& known);

}  // namespace rankscope::cli
