// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/cli/command_line/command_tree.h"

namespace rankscope::cli {

/// Writes the manual page of a verb, rankscope-VERB(1), with the verbs inside it: macros of man(7).
std::string manPage(const CommandTree& verb, const std::string& version);

}  // namespace rankscope::cli
