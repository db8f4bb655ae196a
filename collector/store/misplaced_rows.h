// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "collector/store/sqlite.h"

namespace rankscope::store {

/// Where tables extent and rank do not give every row of the event tables to exactly one rank, a sentence each; empty
/// for a sound file. Readers find a rank's rows by its extent, so such rows would be left out, or counted twice,
/// without a word. Looks at the ends of extents and into gaps between them only, so it costs a few look-ups for each
/// rank and table, however many rows there are. To be called in a transaction where somebody may write to the file.
std::vector<std::string> findMisplacedRows(Database& database);

/// Throws Error for what findMisplacedRows finds, and where a row at an end of an extent is missing or another rank's.
void refuseMisplacedRows(Database& database);

}  // namespace rankscope::store
