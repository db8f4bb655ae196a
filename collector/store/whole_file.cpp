// SPDX-License-Identifier: Apache-2.0
#include "collector/store/whole_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "collector/store/error.h"
#include "collector/store/schema.h"

namespace rankscope::store {
namespace {

constexpr const char* kMakeAgain = "make it again with `rankscope collect` or `rankscope import`";
constexpr const char* kImport = "traces of other tools go through `rankscope import`";

struct ColumnSpec {
    std::string table, name, type;
    bool required = false;  // NULL has no meaning there
};

std::vector<ColumnSpec> columnsOf(Database& database) {
    Statement query(database,
                    "SELECT m.name, c.name, c.type, c.\"notnull\" OR c.pk FROM sqlite_master m JOIN "
                    "pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.rowid, c.cid");
    std::vector<ColumnSpec> columns;
    while (query.step())
        columns.push_back({std::string(query.text(0)), std::string(query.text(1)), std::string(query.text(2)),
                           query.integer(3) != 0});
    return columns;
}

const std::vector<ColumnSpec>& schemaColumns() {
    static const std::vector<ColumnSpec> columns = [] {
        Database empty(":memory:", OpenMode::create);
        empty.execute(std::string(schemaSql()));
        return columnsOf(empty);
    }();
    return columns;
}

void refuseMissingColumns(Database& database) {
    std::set<std::string> tables;
    std::set<std::pair<std::string, std::string>> columns;
    for (const ColumnSpec& column : columnsOf(database)) {
        tables.insert(column.table);
        columns.emplace(column.table, column.name);
    }
    for (const ColumnSpec& column : schemaColumns()) {
        if (!tables.contains(column.table) && mayBeMissing(column.table)) continue;
        if (!tables.contains(column.table))
            throw Error(database.file(), "not a whole trace.db: table " + column.table + " is missing", kMakeAgain);
        if (!columns.contains({column.table, column.name}))
            throw Error(database.file(),
                        "not a whole trace.db: column " + column.name + " of table " + column.table + " is missing",
                        kMakeAgain);
    }
}

// A few tables may be gone from a trace.db; another program's file has none or a few.
bool isOurs(Database& database) {
    std::set<std::string> ours, present;
    for (const ColumnSpec& column : schemaColumns()) ours.insert(column.table);
    Statement names(database, "SELECT name FROM sqlite_master WHERE type = 'table'");
    while (names.step())
        if (std::string name(names.text(0)); ours.contains(name)) present.insert(std::move(name));
    return present.size() * 2 > ours.size();
}

// SQLite reads what is left of the last page as zeros. With a write-ahead log the file may grow at any moment.
void refuseCutOff(Database& database) {
    std::ifstream file(database.file(), std::ios::binary);
    char fileFormat = 0;
    if (!file.seekg(18).get(fileFormat) || fileFormat != 1) return;
    std::error_code ignored;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(database.file(), ignored));
    const int64_t pages = database.integer("PRAGMA page_count"), pageBytes = database.integer("PRAGMA page_size");
    if (bytes < pages * pageBytes)
        throw Error(database.file(),
                    "not a whole trace.db: it is cut off, " + std::to_string(bytes) + " of " +
                        std::to_string(pages * pageBytes) + " bytes are there",
                    std::string("copy it again, or ") + kMakeAgain);
}

}  // namespace

void refuseOtherFiles(const std::string& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored))
        throw Error(file, "not a file that can be read as a trace.db",
                    "a run is named by its directory, its name or its .db file");
    if (std::filesystem::file_size(file, ignored) == 0) throw Error(file, "the file is empty", kMakeAgain);
    constexpr std::string_view kFirstBytes("SQLite format 3\0", 16);
    std::array<char, kFirstBytes.size()> bytes{};
    std::ifstream in(file, std::ios::binary);
    if (!in) throw Error(file, "cannot be opened", "check that you may read it");
    in.read(bytes.data(), bytes.size());
    if (std::string_view(bytes.data(), static_cast<size_t>(in.gcount())) != kFirstBytes)
        throw Error(file, "not a readable trace.db: it does not begin as one",
                    std::string(kImport) + "; a damaged trace.db is made again with `rankscope collect`");
}

void refusePartsOfATrace(Database& database) {
    try {
        database.execute("BEGIN");  // one state of the file, whoever writes to it
        const int64_t version = database.integer("PRAGMA user_version");
        if (!isOurs(database)) throw Error(database.file(), "a SQLite file, but no trace.db of Rankscope's", kImport);
        if (version != kSchemaVersion)
            throw Error(database.file(),
                        "trace.db has schema version " + std::to_string(version) + ", this rankscope reads version " +
                            std::to_string(kSchemaVersion),
                        version > kSchemaVersion ? "use the newer rankscope that wrote it" : kMakeAgain);
        refuseMissingColumns(database);
        refuseCutOff(database);
        database.execute("COMMIT");
    } catch (const DamagedFile& error) {
        throw DamagedFile(database.file(), "not a readable trace.db: damaged or cut off (" + error.cause() + ")",
                          std::string("copy it again, or ") + kMakeAgain);
    }
}

bool mayBeMissing(const std::string& table) {
    return table == "proxy_op" || table == "kernel_summary" || table == "kernel_span" || table == "counter" ||
           table == "machine_link" || table == "cost_fit" || table == "symbol" || table == "failed_allocation" ||
           table == "thread_stack" || table == "device_health" || table == "port_counter" || table == "recorder_call" ||
           table == "recorder_group" || table == "critical_path" || table == "shard" || table == "rank_activity";
}

int64_t rowsOfWrongType(Database& database, const std::string& table) {
    std::string wrong;
    for (const ColumnSpec& column : schemaColumns()) {
        if (column.table != table) continue;
        const std::string quoted = '"' + column.name + '"', allowed = column.type == "REAL"   ? "'real', 'integer'"
                                                                      : column.type == "TEXT" ? "'text'"
                                                                      : column.type == "BLOB" ? "'blob'"
                                                                                              : "'integer'";
        wrong += (wrong.empty() ? "" : " OR ") +
                 ("typeof(" + quoted + ") NOT IN (" + allowed + (column.required ? ")" : ", 'null')"));
    }
    return wrong.empty() ? 0 : database.integer("SELECT count(*) FROM \"" + table + "\" WHERE " + wrong);
}

}  // namespace rankscope::store
