// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::cli {

// Open MPI starts ranks on other hosts over ssh without our variables. The words to add to such a command (-x NAME …);
// empty for any other command, or when they are there already.
std::string missingForwardOptions(const std::vector<std::string>& command, const std::vector<std::string>& variables);

}  // namespace rankscope::cli
