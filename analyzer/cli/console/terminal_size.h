// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "analyzer/text/terminal_text.h"

namespace rankscope::cli {

/// Tells how wide text for people is on stdout: COLUMNS where it holds a number, else as wide as the terminal and at
/// most `most`, which also holds for what goes to a pipe. Sentences are read at ease in text::kTextColumns.
size_t columnsOfStdout(size_t most = text::kTextColumns);

}  // namespace rankscope::cli
