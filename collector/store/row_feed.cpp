// SPDX-License-Identifier: Apache-2.0
#include "collector/store/row_feed.h"

#include <sqlite3.h>

#include <new>

namespace rankscope::store {
namespace {

struct FeedTable {
    sqlite3_vtab base;
    RowFeed* feed;
};

struct FeedCursor {
    sqlite3_vtab_cursor base;
    const FeedRows* rows;
    size_t next;
};

int connect(sqlite3* handle, void* client, int, const char* const*, sqlite3_vtab** table, char**) {
    auto* feed = static_cast<RowFeed*>(client);
    std::string sql = "CREATE TABLE x(";
    for (size_t i = 0; i < feed->columnCount(); ++i) sql += (i ? ",c" : "c") + std::to_string(i);
    sql += ")";
    const int code = sqlite3_declare_vtab(handle, sql.c_str());
    if (code != SQLITE_OK) return code;
    *table = reinterpret_cast<sqlite3_vtab*>(new (std::nothrow) FeedTable{{}, feed});
    return *table ? SQLITE_OK : SQLITE_NOMEM;
}

int disconnect(sqlite3_vtab* table) {
    delete reinterpret_cast<FeedTable*>(table);
    return SQLITE_OK;
}

int bestIndex(sqlite3_vtab* table, sqlite3_index_info* info) {
    const auto count = reinterpret_cast<FeedTable*>(table)->feed->rows.count;
    info->estimatedCost = static_cast<double>(count);
    info->estimatedRows = static_cast<sqlite3_int64>(count);
    return SQLITE_OK;
}

int openCursor(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
    auto* feed = reinterpret_cast<FeedTable*>(table)->feed;
    *cursor = reinterpret_cast<sqlite3_vtab_cursor*>(new (std::nothrow) FeedCursor{{}, &feed->rows, 0});
    return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

int closeCursor(sqlite3_vtab_cursor* cursor) {
    delete reinterpret_cast<FeedCursor*>(cursor);
    return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
    reinterpret_cast<FeedCursor*>(cursor)->next = 0;
    return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
    ++reinterpret_cast<FeedCursor*>(cursor)->next;
    return SQLITE_OK;
}

int eof(sqlite3_vtab_cursor* cursor) {
    const auto* feedCursor = reinterpret_cast<FeedCursor*>(cursor);
    return feedCursor->next >= feedCursor->rows->count;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
    const auto* feedCursor = reinterpret_cast<FeedCursor*>(cursor);
    const FeedRows& rows = *feedCursor->rows;
    rows.columns[index](context, rows.rows + feedCursor->next * rows.rowBytes);
    return SQLITE_OK;
}

int rowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
    *id = static_cast<sqlite3_int64>(reinterpret_cast<FeedCursor*>(cursor)->next);
    return SQLITE_OK;
}

sqlite3_module makeModule() {
    sqlite3_module module{};
    module.xConnect =
        connect;  // no xCreate: the table exists without a CREATE VIRTUAL TABLE and leaves nothing in the file
    module.xBestIndex = bestIndex;
    module.xDisconnect = disconnect;
    module.xOpen = openCursor;
    module.xClose = closeCursor;
    module.xFilter = filter;
    module.xNext = next;
    module.xEof = eof;
    module.xColumn = column;
    module.xRowid = rowId;
    return module;
}

}  // namespace

RowFeed::RowFeed(Database& database, const std::string& name, size_t columnCount) : m_columnCount(columnCount) {
    static const sqlite3_module kModule = makeModule();
    checkSqlite(sqlite3_create_module_v2(database.handle(), name.c_str(), &kModule, this, nullptr), database,
                "create_module", name);
}

}  // namespace rankscope::store
