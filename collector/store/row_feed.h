// SPDX-License-Identifier: Apache-2.0
// Bulk insertion: rows in memory are shown to SQLite as a virtual table, so that one `INSERT … SELECT` moves a whole
// span without a bind call per value.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "collector/store/sqlite.h"

struct sqlite3_context;

namespace rankscope::store {

/// Rows of one type, behind a column function per column.
struct FeedRows {
    using ColumnFunction = void (*)(sqlite3_context* context, const void* row);

    const std::byte* rows = nullptr;
    size_t rowBytes = 0;
    size_t count = 0;
    const ColumnFunction* columns = nullptr;
};

/// Owns the virtual table `name` of a connection; its columns are c0, c1… `rows` is what a SELECT on it sees at that
/// moment.
class RowFeed {
  public:
    RowFeed(Database& database, const std::string& name, size_t columnCount);
    RowFeed(const RowFeed&) = delete;
    RowFeed& operator=(const RowFeed&) = delete;

    FeedRows rows;
    size_t columnCount() const noexcept { return m_columnCount; }

  private:
    size_t m_columnCount;
};

}  // namespace rankscope::store
