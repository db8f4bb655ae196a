// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/cli/command_line/command_tree.h"

namespace rankscope::cli {

/// Write a shell's completion of verbs, options and their values; where any value will do, of files; behind `--`, in
/// bash and zsh, of the job's own command. Each is a file by itself, put where the shell looks for it or read in by its
/// user.
std::string bashCompletion(const CommandTree& program);
std::string zshCompletion(const CommandTree& program);
std::string fishCompletion(const CommandTree& program);

}  // namespace rankscope::cli
