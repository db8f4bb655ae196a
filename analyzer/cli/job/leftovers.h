// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rankscope::cli {

// Takes away what writers of this database left beside it when they were killed: .trace.db.PID.part, and SQLite's
// journal of it, of processes that are gone. For callers that know no other host to be writing it: a pid tells nothing
// there.
void removeLeftovers(const std::filesystem::path& database);

}  // namespace rankscope::cli
