// SPDX-License-Identifier: Apache-2.0
#include "collector/store/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "collector/store/column_access.h"
#include "collector/store/error.h"
#include "collector/store/misplaced_rows.h"
#include "collector/store/shard_tables.h"
#include "collector/store/tables.h"
#include "collector/store/whole_file.h"

namespace rankscope::store {
namespace {

constexpr const char* kMakeItAgain = "make it again with `rankscope collect` or `rankscope import`";

template <typename Row>
std::string selectSql(const std::string& tail) {
    std::string names;
    std::apply(
        [&names](const auto&... column) { ((names += (names.empty() ? "" : ",") + std::string(column.name)), ...); },
        Table<Row>::kColumns);
    return "SELECT " + names + " FROM " + tableName<Row>() + " " + tail;
}

// What a damaged file holds beyond these is cut: a thousand of them still add up in an int64.
constexpr int64_t kLargestNs = int64_t{1}
                               << 53;  // 104 days before or after the job's first event: longer than any recording
constexpr int64_t kLargestBytes = int64_t{1} << 50;   // more than any machine holds
constexpr int64_t kLargestHostNs = int64_t{1} << 61;  // of a host's clock, which may count from 1970

void cut(int64_t& value, int64_t largest) {
    value = std::clamp(value, -largest, largest);
}
template <typename Maybe>
requires requires(Maybe value) {
    value.has_value();
    value.value_or(int64_t{});
}
void cut(Maybe& value, int64_t largest) {
    if constexpr (std::is_same_v<typename Maybe::value_type, int64_t>)
        if (value) cut(*value, largest);
}

template <typename Row, size_t I>
void takeColumn(sqlite3_stmt* statement, Row& row) {
    constexpr std::string_view kName = std::get<I>(Table<Row>::kColumns).name;
    auto& value = row.*std::get<I>(Table<Row>::kColumns).field;
    takeValue(statement, static_cast<int>(I), value);
    if constexpr (kName.ends_with("_ns")) cut(value, std::is_same_v<Row, ClockModel> ? kLargestHostNs : kLargestNs);
    if constexpr (kName.ends_with("bytes")) cut(value, kLargestBytes);
}

template <typename Row, size_t... I>
void takeRow(sqlite3_stmt* statement, Row& row, std::index_sequence<I...>) {
    (takeColumn<Row, I>(statement, row), ...);
}

template <typename Row>
std::string orderColumns() {
    if constexpr (requires(Row row) { row.id; }) return "ORDER BY id";
    return "";  // tables without rowid come in the order of their key
}

std::string whereIds(const IdRange& ids) {
    return "WHERE id BETWEEN " + std::to_string(ids.first) + " AND " + std::to_string(ids.last) + " ORDER BY id";
}

template <typename Row>
const char* timeColumn() {
    if constexpr (requires(Row row) { row.timeNs; }) return "time_ns";
    return "start_ns";
}

/// First id in `ids` whose time is not below `timeNs`; last + 1 when there is none.
template <typename Row>
int64_t firstNotBefore(Database& database, IdRange ids, int64_t timeNs) {
    Statement lookUp(database,
                     std::string("SELECT ") + timeColumn<Row>() + " FROM " + tableName<Row>() + " WHERE id = ?1");
    int64_t low = ids.first;
    int64_t high = ids.last + 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        lookUp.bind(1, middle);
        const bool before = lookUp.step() && lookUp.integer(0) < timeNs;
        lookUp.reset();
        before ? low = middle + 1 : high = middle;
    }
    return low;
}

std::string existingFile(const std::filesystem::path& run) {
    const std::filesystem::path file = TraceReader::databasePath(run);
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw Error(file.string(), "no such file",
                    "a run is named by its directory, its name or its .db file; `rankscope collect " + run.string() +
                        "` makes trace.db");
    }
    refuseOtherFiles(file.string());
    return file.string();
}

}  // namespace

template <typename Row>
Cursor<Row>::Cursor(Database& database, const std::string& tail, int64_t lastString)
    : m_database(&database),
      m_lastString(lastString),
      m_statement(std::in_place, database, selectSql<Row>(tail.empty() ? orderColumns<Row>() : tail)) {}

template <typename Row>
void Cursor<Row>::requireStringsOf(const Row& row) const {
    const auto require = [&](int64_t id) {
        if (id < 0 || id > m_lastString)
            throw Error(
                m_database->file(),
                std::string("damaged: table ") + tableName<Row>() + " names strings that table string does not have",
                kMakeItAgain);
    };
    if constexpr (requires { row.nameId; }) require(row.nameId);
    if constexpr (requires { row.domainId; }) require(row.domainId.value_or(0));
}

template <typename Row>
bool Cursor<Row>::next(Row& row) {
    if (!m_statement || !m_statement->step()) return false;
    takeRow(m_statement->handle(), row,
            std::make_index_sequence<std::tuple_size_v<std::decay_t<decltype(Table<Row>::kColumns)>>>());
    if (m_lastString != INT64_MAX) requireStringsOf(row);
    return true;
}

TraceReader::TraceReader(const std::filesystem::path& run, WhenLocked whenLocked, MisplacedRows misplaced,
                         MissingShards missing)
    : m_database(existingFile(run), OpenMode::readOnly) {
    if (whenLocked) m_database.whenLocked(std::move(whenLocked));
    refusePartsOfATrace(m_database);
    // Nothing is mapped, and little kept: both count as memory of the process, once for each of its connections, and
    // more gained no time (256 ranks analysed, 1,024 looked at).
    m_database.execute("PRAGMA cache_size = -4096; PRAGMA mmap_size = 0");
    {
        const Transaction oneState(m_database);  // a writer's new rows come together with their extent
        readMeta();
        readExtents();
    }
    if (hasTable("shard")) findShards(missing);
    m_database.execute("PRAGMA query_only = ON");
    const Transaction oneState(m_database);
    if (misplaced == MisplacedRows::kept) return;
    if (misplaced == MisplacedRows::refused && !m_shards) refuseMisplacedRows(m_database);
    if (misplaced == MisplacedRows::refused && m_shards) {
        for (const std::string table : kEventTables)  // they are empty: each shard is looked at by itself
            if (hasTable(table.c_str()) && m_database.integer("SELECT EXISTS (SELECT 1 FROM main." + table + ")") != 0)
                throw Error(m_database.file(), "damaged: it has shards, and events of its own in table " + table,
                            kMakeItAgain);
        m_shards->checkAll(missing);
    }
    refuseStrangeStrings();
}

TraceReader::~TraceReader() = default;

void TraceReader::findShards(MissingShards missing) {
    if (m_database.integer("SELECT EXISTS (SELECT 1 FROM shard)") == 0) return;
    m_shards = std::make_unique<Shards>(m_database, meta(kShardsKey, ""), m_extents);
    if (missing == MissingShards::refused)
        for (const auto& [rank, file] : m_shards->fileOfRank()) m_shards->of(rank);
    attachShardTables(m_database, *m_shards);
}

Database& TraceReader::databaseOf(int32_t rank) {
    Database* shard = m_shards ? m_shards->of(rank) : nullptr;
    return shard != nullptr ? *shard : m_database;
}

const std::map<int32_t, std::string>& TraceReader::shardOfRank() const {
    static const std::map<int32_t, std::string> kNone;
    return m_shards ? m_shards->fileOfRank() : kNone;
}

std::vector<std::string> TraceReader::missingShards() const {
    return m_shards ? m_shards->missing() : std::vector<std::string>();
}

std::filesystem::path TraceReader::databasePath(const std::filesystem::path& run) {
    std::error_code ignored;
    if (std::filesystem::is_directory(run, ignored) ||
        (run.extension() != ".db" && !std::filesystem::is_regular_file(run, ignored)))
        return run / "trace.db";
    return run;
}

void TraceReader::readMeta() {
    Statement select(m_database, "SELECT key, value FROM meta");
    while (select.step()) m_meta.emplace(select.text(0), select.text(1));
}

void TraceReader::readExtents() {
    Cursor<Extent> rows(m_database, "");
    Extent extent;
    // Ids count from 1; those of a damaged extent are cut to where sums and differences of them do not overflow.
    constexpr int64_t kLargest = INT64_MAX / 4;
    while (rows.next(extent)) {
        extent.firstId = std::clamp<int64_t>(extent.firstId, 0, kLargest);
        extent.lastId = std::clamp<int64_t>(extent.lastId, -1, kLargest);
        m_extents[{extent.tableName, extent.rank}] = extent;
    }
}

std::string TraceReader::meta(const std::string& key, const std::string& fallback) const {
    const auto place = m_meta.find(key);
    return place == m_meta.end() ? fallback : place->second;
}

int64_t TraceReader::metaInteger(const std::string& key, int64_t fallback) const {
    const auto place = m_meta.find(key);
    if (place == m_meta.end() || place->second.empty()) return fallback;
    char* end = nullptr;
    const int64_t value = std::strtoll(place->second.c_str(), &end, 10);
    return *end == '\0' ? value : fallback;
}

// Ids count from 1 without a gap (schema.sql): what they are indices of is as large as the largest.
void TraceReader::refuseStrangeStrings() {
    Statement select(m_database, "SELECT count(*), ifnull(min(id), 1), ifnull(max(id), 0) FROM string");
    select.step();
    m_lastString = select.integer(2);
    if (select.integer(1) < 1 || m_lastString > select.integer(0))
        throw Error(m_database.file(),
                    "damaged: table string has " + std::to_string(select.integer(0)) + " rows with ids from " +
                        std::to_string(select.integer(1)) + " to " + std::to_string(m_lastString),
                    kMakeItAgain);
}

void TraceReader::loadStrings() {
    if (m_stringsLoaded) return;
    m_stringsLoaded = true;
    // Only a damaged file has ids above the number of its rows; of one that is kept, those are left out that would take
    // room for many that are not there.
    constexpr int64_t kFreeIds = 4096;
    const int64_t lastKept = 2 * m_database.integer("SELECT count(*) FROM string") + kFreeIds;
    m_strings.resize(1);
    Statement select(m_database, "SELECT id, text FROM string ORDER BY id");
    while (select.step()) {
        const int64_t id = select.integer(0);
        if (id < 1 || id > lastKept) continue;
        m_strings.resize(static_cast<size_t>(id) + 1);
        m_strings.back() = select.text(1);
    }
}

const std::vector<std::string>& TraceReader::strings() {
    loadStrings();
    return m_strings;
}

const std::string& TraceReader::string(int64_t id) {
    loadStrings();
    return id > 0 && id < static_cast<int64_t>(m_strings.size()) ? m_strings[static_cast<size_t>(id)] : m_strings[0];
}

IdRange TraceReader::extentOf(const char* table, int32_t rank, int64_t* maxDurNs) const {
    const auto place = m_extents.find({table, rank});
    if (place == m_extents.end()) return {};
    if (maxDurNs) *maxDurNs = place->second.maxDurNs;
    return {place->second.firstId, place->second.lastId};
}

// Of a row of SQLite: its length, its id, the length of its header, and a type and a byte for two columns.
constexpr int64_t kFewestBytesOfRow = 7;

template <typename Row>
std::vector<Row> TraceReader::all() {
    std::vector<Row> rows;
    if (mayBeMissing(tableName<Row>()) && !hasTable(tableName<Row>())) return rows;
    // A job of a thousand ranks has millions of them: a vector that grows would take three times their memory.
    rows.reserve(rowCount(tableName<Row>()));
    Cursor<Row> cursor(m_database, "", m_lastString);
    for (Row row; cursor.next(row);) rows.push_back(row);
    return rows;
}

size_t TraceReader::rowCount(const char* table) {
    const int64_t bytes = m_database.integer("PRAGMA page_count") * m_database.integer("PRAGMA page_size");
    const int64_t count = m_database.integer(std::string("SELECT count(*) FROM ") + table);
    return static_cast<size_t>(std::clamp<int64_t>(count, 0, bytes / kFewestBytesOfRow));
}

template <typename Row>
std::vector<Row> TraceReader::allBetween(const char* column, std::optional<int64_t> above,
                                         std::optional<int64_t> upTo) {
    std::vector<Row> rows;
    const auto add = [&](const std::string& where) {
        Cursor<Row> cursor(m_database, fmt::format("WHERE {} ORDER BY {}", where, column), m_lastString);
        for (Row row; cursor.next(row);) rows.push_back(row);
    };
    if (!above) add(fmt::format("{} IS NULL", column));
    std::string where = fmt::format("{} IS NOT NULL", column);
    if (above) where += fmt::format(" AND {} > {}", column, *above);
    if (upTo) where += fmt::format(" AND {} <= {}", column, *upTo);
    add(where);
    return rows;
}

template std::vector<Collective> TraceReader::allBetween(const char*, std::optional<int64_t>, std::optional<int64_t>);
template std::vector<CollectiveMember> TraceReader::allBetween(const char*, std::optional<int64_t>,
                                                               std::optional<int64_t>);
template std::vector<P2p> TraceReader::allBetween(const char*, std::optional<int64_t>, std::optional<int64_t>);

template <typename Row>
IdRange TraceReader::extent(int32_t rank) const {
    return extentOf(tableName<Row>(), rank, nullptr);
}

bool TraceReader::hasTable(const char* name) {
    const auto [known, isNew] = m_hasTable.try_emplace(name, false);
    if (isNew)
        known->second = m_database.integer("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" +
                                           std::string(name) + "'") == 1;
    return known->second;
}

template <typename Row>
Cursor<Row> TraceReader::cursor(int32_t rank) {
    const IdRange ids = extentOf(tableName<Row>(), rank, nullptr);
    if (ids.empty()) return Cursor<Row>(m_database);
    return Cursor<Row>(databaseOf(rank), whereIds(ids), m_lastString);
}

template <typename Row>
Cursor<Row> TraceReader::cursor(int32_t rank, int64_t fromNs, int64_t toNs) {
    int64_t maxDurNs = 0;
    const IdRange ids = extentOf(tableName<Row>(), rank, &maxDurNs);
    if (ids.empty() || toNs <= fromNs) return Cursor<Row>(m_database);
    int64_t earliestNs = 0;  // a damaged extent may hold anything
    if (__builtin_sub_overflow(fromNs, maxDurNs, &earliestNs)) earliestNs = INT64_MIN;
    Database& events = databaseOf(rank);
    const IdRange window{firstNotBefore<Row>(events, ids, earliestNs), firstNotBefore<Row>(events, ids, toNs) - 1};
    std::string overlap;
    if constexpr (requires(Row row) { row.durNs; }) {
        overlap = " AND (start_ns + ifnull(dur_ns, 0) > " + std::to_string(fromNs) +
                  " OR start_ns = " + std::to_string(fromNs) + ")";
    }
    return Cursor<Row>(events,
                       "WHERE id BETWEEN " + std::to_string(window.first) + " AND " + std::to_string(window.last) +
                           overlap + " ORDER BY id",
                       m_lastString);
}

template <typename Row>
bool TraceReader::find(int64_t id, Row& row) {
    return Cursor<Row>(m_database, "WHERE id = " + std::to_string(id), m_lastString).next(row);
}

// clang-format off
#define RANKSCOPE_READS_WHOLE(Row) template class Cursor<Row>; template std::vector<Row> TraceReader::all();
#define RANKSCOPE_READS_BY_ID(Row) RANKSCOPE_READS_WHOLE(Row) template bool TraceReader::find(int64_t, Row&);
#define RANKSCOPE_READS_BY_RANK(Row) \
    RANKSCOPE_READS_BY_ID(Row) template IdRange TraceReader::extent<Row>(int32_t) const; \
    template Cursor<Row> TraceReader::cursor(int32_t); \
    template Cursor<Row> TraceReader::cursor(int32_t, int64_t, int64_t);
// clang-format on

RANKSCOPE_READS_BY_ID(Host)
RANKSCOPE_READS_WHOLE(ClockModel)
RANKSCOPE_READS_BY_ID(Process)
RANKSCOPE_READS_WHOLE(Rank)
RANKSCOPE_READS_BY_ID(Device)
RANKSCOPE_READS_BY_ID(MachineLink)
RANKSCOPE_READS_BY_ID(Thread)
RANKSCOPE_READS_BY_ID(Stream)
RANKSCOPE_READS_BY_ID(Communicator)
RANKSCOPE_READS_WHOLE(CommunicatorMember)
RANKSCOPE_READS_BY_RANK(Kernel)
RANKSCOPE_READS_BY_RANK(Memcpy)
RANKSCOPE_READS_BY_RANK(Memset)
RANKSCOPE_READS_BY_RANK(ApiCall)
RANKSCOPE_READS_BY_RANK(Synchronization)
RANKSCOPE_READS_BY_RANK(CudaEvent)
RANKSCOPE_READS_BY_RANK(Allocation)
RANKSCOPE_READS_BY_ID(ThreadStack)
RANKSCOPE_READS_BY_ID(DeviceHealth)
RANKSCOPE_READS_BY_ID(PortCounter)
RANKSCOPE_READS_BY_ID(FailedAllocation)
RANKSCOPE_READS_BY_RANK(NvtxRange)
RANKSCOPE_READS_BY_RANK(NcclCall)
RANKSCOPE_READS_WHOLE(RecorderCall)
RANKSCOPE_READS_WHOLE(RecorderGroup)
RANKSCOPE_READS_BY_RANK(ProxyOp)
RANKSCOPE_READS_BY_RANK(KernelSummary)
RANKSCOPE_READS_BY_RANK(KernelSpan)
RANKSCOPE_READS_BY_RANK(Counter)
RANKSCOPE_READS_BY_ID(Collective)
RANKSCOPE_READS_WHOLE(CollectiveMember)
RANKSCOPE_READS_BY_ID(P2p)
RANKSCOPE_READS_WHOLE(Step)
RANKSCOPE_READS_BY_ID(Loss)
RANKSCOPE_READS_WHOLE(SourceStatus)
RANKSCOPE_READS_WHOLE(Extent)
RANKSCOPE_READS_WHOLE(Shard)

}  // namespace rankscope::store
