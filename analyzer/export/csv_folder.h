// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rankscope::store {
class Database;
}

namespace rankscope::exports {

/// Writes every table of a trace.db as `folder`/TABLE.csv (RFC 4180), the first line with the names of the columns
/// (collector/store/schema.sql tells what they mean), rows in the table's order; NULL is empty, bytes are hexadecimal.
/// Makes the folder where it is missing; each file is there as a whole or not at all. Throws store::Error and
/// std::filesystem::filesystem_error.
void writeCsvFolder(store::Database& trace, const std::filesystem::path& folder);

}  // namespace rankscope::exports
