// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "collector/store/sqlite.h"

namespace rankscope::store {

/// Throws Error where `file` cannot be a trace.db, by its first bytes; nothing is opened with SQLite before.
void refuseOtherFiles(const std::string& file);

/// Throws Error where an opened file is none of Rankscope's, is of another schema version, lacks a table or column of
/// schema.sql, or is cut off. What its rows hold is not looked at.
void refusePartsOfATrace(Database& database);

/// Whether a whole trace.db of this version may lack `table`: it is younger than the version's first traces.
bool mayBeMissing(const std::string& table);

/// Rows of `table` with a value of another type than schema.sql gives its column, NULL in a NOT NULL column included.
/// SQLite itself keeps no type.
int64_t rowsOfWrongType(Database& database, const std::string& table);

}  // namespace rankscope::store
