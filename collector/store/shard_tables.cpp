// SPDX-License-Identifier: Apache-2.0
#include "collector/store/shard_tables.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "collector/store/error.h"
#include "collector/store/tables.h"

namespace rankscope::store {
namespace {

/// What an index of chooseParts() asks of filterParts(): one letter for each argument.
enum Wanted : char { idIs = '=', idFrom = '>', idTo = '<', rankIs = 'r' };

struct ShardTable {
    sqlite3_vtab base;
    Shards* shards;
    std::string name, columns;  // of the table
    int idColumn = -1, rankColumn = -1;
    std::map<Database*, std::vector<std::unique_ptr<Statement>>> free;  // prepared, and used by no cursor
};

struct ShardCursor {
    sqlite3_vtab_cursor base;
    const std::vector<Shards::Part>* parts = nullptr;
    size_t next = 0;              // part
    IdRange ids;                  // that are wanted
    std::optional<int64_t> rank;  // the same; none: all
    Database* database = nullptr;
    std::unique_ptr<Statement> rows;
    bool atEnd = false;
};

ShardTable& tableOf(ShardCursor& cursor) {
    return *reinterpret_cast<ShardTable*>(cursor.base.pVtab);
}

/// Errors must not pass through SQLite, which is no C++.
template <typename Function>
int guarded(sqlite3_vtab* table, const Function& function) {
    try {
        function();
        return SQLITE_OK;
    } catch (const std::bad_alloc&) {
        return SQLITE_NOMEM;
    } catch (const std::exception& error) {
        sqlite3_free(table->zErrMsg);
        table->zErrMsg = sqlite3_mprintf("%s", error.what());
        return SQLITE_ERROR;
    }
}

void giveBack(ShardCursor& cursor) {
    if (!cursor.rows) return;
    cursor.rows->reset();
    tableOf(cursor).free[cursor.database].push_back(std::move(cursor.rows));
}

/// To the next row, in the next part where this one ends.
void goOn(ShardCursor& cursor) {
    ShardTable& table = tableOf(cursor);
    for (;;) {
        if (cursor.rows && cursor.rows->step()) return;
        giveBack(cursor);
        if (cursor.next == cursor.parts->size() || (*cursor.parts)[cursor.next].ids.first > cursor.ids.last) {
            cursor.atEnd = true;
            return;
        }
        const Shards::Part& part = (*cursor.parts)[cursor.next++];
        if (cursor.rank && part.rank != *cursor.rank) continue;
        cursor.database = table.shards->of(part.rank);
        if (cursor.database == nullptr) continue;
        std::vector<std::unique_ptr<Statement>>& free = table.free[cursor.database];
        if (free.empty()) {
            cursor.rows =
                std::make_unique<Statement>(*cursor.database, "SELECT " + table.columns + " FROM \"" + table.name +
                                                                  "\" WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
        } else {
            cursor.rows = std::move(free.back());
            free.pop_back();
        }
        cursor.rows->bind(1, std::max(part.ids.first, cursor.ids.first))
            .bind(2, std::min(part.ids.last, cursor.ids.last));
    }
}

int madeTable(sqlite3* handle, void* client, int count, const char* const* words, sqlite3_vtab** made, char** error) {
    auto table = std::make_unique<ShardTable>();
    table->base = {};
    table->shards = static_cast<Shards*>(client);
    if (count < 3) return SQLITE_ERROR;
    table->name = words[2];
    std::string declaration;
    sqlite3_stmt* columns = nullptr;
    int code = sqlite3_prepare_v2(handle, "SELECT name, type FROM pragma_table_info(?1, 'main') ORDER BY cid", -1,
                                  &columns, nullptr);
    if (code != SQLITE_OK) return code;
    sqlite3_bind_text(columns, 1, table->name.c_str(), -1, SQLITE_TRANSIENT);
    for (int column = 0; sqlite3_step(columns) == SQLITE_ROW; ++column) {
        const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(columns, 0));
        if (name == "id") table->idColumn = column;
        if (name == "rank") table->rankColumn = column;
        table->columns += (column == 0 ? "\"" : ", \"") + name + '"';
        declaration += (column == 0 ? "\"" : ", \"") + name + "\" " +
                       reinterpret_cast<const char*>(sqlite3_column_text(columns, 1));
    }
    code = sqlite3_finalize(columns);  // what ended the loop
    if (code != SQLITE_OK) return code;
    if (table->idColumn < 0 || table->rankColumn < 0) {
        *error = sqlite3_mprintf("table %s has no column id or rank", table->name.c_str());
        return SQLITE_ERROR;
    }
    code = sqlite3_declare_vtab(handle, ("CREATE TABLE x(" + declaration + ")").c_str());
    if (code != SQLITE_OK) return code;
    *made = reinterpret_cast<sqlite3_vtab*>(table.release());
    return SQLITE_OK;
}

int connectTable(sqlite3* handle, void* client, int count, const char* const* words, sqlite3_vtab** made,
                 char** error) {
    try {
        return madeTable(handle, client, count, words, made, error);
    } catch (const std::bad_alloc&) {
        return SQLITE_NOMEM;
    }
}

int disconnectTable(sqlite3_vtab* table) {
    delete reinterpret_cast<ShardTable*>(table);
    return SQLITE_OK;
}

int chooseParts(sqlite3_vtab* base, sqlite3_index_info* info) {
    const auto& table = *reinterpret_cast<ShardTable*>(base);
    auto* wanted = static_cast<char*>(sqlite3_malloc(info->nConstraint + 1));
    if (wanted == nullptr) return SQLITE_NOMEM;
    int arguments = 0;
    for (int i = 0; i < info->nConstraint; ++i) {
        const auto& constraint = info->aConstraint[i];
        if (constraint.usable == 0) continue;
        const bool isId = constraint.iColumn == table.idColumn || constraint.iColumn == -1;
        char letter = 0;
        if (isId && constraint.op == SQLITE_INDEX_CONSTRAINT_EQ) letter = idIs;
        if (isId && (constraint.op == SQLITE_INDEX_CONSTRAINT_GE || constraint.op == SQLITE_INDEX_CONSTRAINT_GT))
            letter = idFrom;
        if (isId && (constraint.op == SQLITE_INDEX_CONSTRAINT_LE || constraint.op == SQLITE_INDEX_CONSTRAINT_LT))
            letter = idTo;
        if (constraint.iColumn == table.rankColumn && constraint.op == SQLITE_INDEX_CONSTRAINT_EQ) letter = rankIs;
        if (letter == 0) continue;
        wanted[arguments] = letter;
        info->aConstraintUsage[i].argvIndex = ++arguments;  // SQLite looks at each row once more
    }
    wanted[arguments] = 0;
    const auto has = [wanted](char letter) { return std::strchr(wanted, letter) != nullptr; };
    info->estimatedRows = has(idIs) ? 1 : has(idFrom) && has(idTo) ? 1000 : has(rankIs) ? 30'000 : 10'000'000;
    info->estimatedCost = 10 + static_cast<double>(info->estimatedRows);
    if (has(idIs)) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    if (info->nOrderBy == 1 && info->aOrderBy[0].desc == 0 &&
        (info->aOrderBy[0].iColumn == table.idColumn || info->aOrderBy[0].iColumn == -1))
        info->orderByConsumed = 1;
    info->idxStr = wanted;
    info->needToFreeIdxStr = 1;
    return SQLITE_OK;
}

int openParts(sqlite3_vtab*, sqlite3_vtab_cursor** made) {
    auto* cursor = new (std::nothrow) ShardCursor{};
    *made = reinterpret_cast<sqlite3_vtab_cursor*>(cursor);
    return cursor != nullptr ? SQLITE_OK : SQLITE_NOMEM;
}

int closeParts(sqlite3_vtab_cursor* base) {
    auto* cursor = reinterpret_cast<ShardCursor*>(base);
    const int code = guarded(base->pVtab, [&] { giveBack(*cursor); });
    delete cursor;
    return code;
}

/// Leaves out what holds no row that meets the condition: SQLite itself looks at each. A value that is no integer
/// leaves all.
void narrow(char wanted, sqlite3_value* value, ShardCursor& cursor) {
    if (sqlite3_value_type(value) != SQLITE_INTEGER) return;
    const int64_t number = sqlite3_value_int64(value);
    if (wanted == rankIs) {
        if (cursor.rank && *cursor.rank != number) cursor.ids = {};
        cursor.rank = number;
        return;
    }
    if (wanted != idTo) cursor.ids.first = std::max(cursor.ids.first, number);
    if (wanted != idFrom) cursor.ids.last = std::min(cursor.ids.last, number);
}

int filterParts(sqlite3_vtab_cursor* base, int, const char* wanted, int count, sqlite3_value** values) {
    auto& cursor = *reinterpret_cast<ShardCursor*>(base);
    return guarded(base->pVtab, [&] {
        giveBack(cursor);
        cursor.parts = &tableOf(cursor).shards->partsOf(tableOf(cursor).name);
        cursor.ids = {INT64_MIN, INT64_MAX};
        cursor.rank.reset();
        for (int i = 0; i < count; ++i) narrow(wanted[i], values[i], cursor);
        const auto first = std::ranges::lower_bound(*cursor.parts, cursor.ids.first, {},
                                                    [](const Shards::Part& part) { return part.ids.last; });
        cursor.next = static_cast<size_t>(first - cursor.parts->begin());
        cursor.atEnd = false;
        goOn(cursor);
    });
}

int nextRow(sqlite3_vtab_cursor* base) {
    return guarded(base->pVtab, [&] { goOn(*reinterpret_cast<ShardCursor*>(base)); });
}

int isAtEnd(sqlite3_vtab_cursor* base) {
    return reinterpret_cast<ShardCursor*>(base)->atEnd ? 1 : 0;
}

int columnOfRow(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
    sqlite3_result_value(context, sqlite3_column_value(reinterpret_cast<ShardCursor*>(base)->rows->handle(), index));
    return SQLITE_OK;
}

int idOfRow(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
    auto& cursor = *reinterpret_cast<ShardCursor*>(base);
    *id = cursor.rows->integer(tableOf(cursor).idColumn);
    return SQLITE_OK;
}

sqlite3_module makeShardModule() {
    sqlite3_module module{};
    module.xCreate = connectTable;
    module.xConnect = connectTable;
    module.xBestIndex = chooseParts;
    module.xDisconnect = disconnectTable;
    module.xDestroy = disconnectTable;
    module.xOpen = openParts;
    module.xClose = closeParts;
    module.xFilter = filterParts;
    module.xNext = nextRow;
    module.xEof = isAtEnd;
    module.xColumn = columnOfRow;
    module.xRowid = idOfRow;
    return module;
}

}  // namespace

void attachShardTables(Database& trace, Shards& shards) {
    static const sqlite3_module kModule = makeShardModule();
    constexpr const char* kName = "rankscope_shards";
    checkSqlite(sqlite3_create_module_v2(trace.handle(), kName, &kModule, &shards, nullptr), trace, "create_module",
                kName);
    for (const std::string table : kEventTables) {
        if (trace.integer("SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = '" + table + "'") ==
            0)
            continue;  // it is younger than the trace
        trace.execute("CREATE VIRTUAL TABLE temp." + table + " USING " + kName);
    }
}

}  // namespace rankscope::store
