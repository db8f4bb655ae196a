// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "analyzer/cli/job/launcher.h"

namespace rankscope::cli {

inline constexpr const char* kDefaultRunName = "rankscope-%t";

// Returns this machine's name, as the kernel knows it.
std::string hostName();

// Expands %h (host), %t (start of the job, YYYYmmdd-HHMMSS), %q{VAR} and %% in the name given with -o. With the
// launcher outside, %t is the same for all ranks of the job that see the same folder: the first rank there writes it
// into a small file named after the job. Throws VerbError for an unknown %-sequence or an unset variable.
std::filesystem::path expandRunName(const std::string& pattern, const LaunchedRank* launched);

// Removes the small file if every rank of the job has read it; otherwise it stays for those that are still to come.
// Never throws.
void forgetRunName(const std::string& pattern, const LaunchedRank& launched);

}  // namespace rankscope::cli
