// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::text {

/// Returns a command as it may be stored: the value of an option or assignment whose name speaks of a secret
/// (`--password x`, `--api-key=x`, `HF_TOKEN=x`), what follows `Bearer`, and the user and password of a URL are `***`.
/// A word with blanks, as `sh -c` takes it, is treated like a command of its own. Secrets without such a name stay.
std::vector<std::string> maskedCommand(const std::vector<std::string>& words);

}  // namespace rankscope::text
