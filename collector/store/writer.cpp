// SPDX-License-Identifier: Apache-2.0
#include "collector/store/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collector/store/column_access.h"
#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/store/page_file.h"
#include "collector/store/row_encoding.h"
#include "collector/store/row_feed.h"
#include "collector/store/schema.h"
#include "collector/store/symbol_name.h"
#include "collector/store/table_pages.h"
#include "collector/store/tables.h"

namespace rankscope::store {
namespace {

struct StringRow {
    int64_t id = 0;
    std::string text;
};

struct SymbolRow {
    int32_t stringId = 0;
    int32_t demangledId = 0;
    int32_t shortId = 0;
};

struct MetaRow {
    std::string key;
    std::string value;
};

/// The virtual table and the INSERT … SELECT that empties it into its table.
struct Insert {
    std::unique_ptr<RowFeed> feed;
    std::unique_ptr<Statement> statement;
};

template <typename Row, size_t... I>
constexpr auto columnFunctions(std::index_sequence<I...>) {
    return std::array<FeedRows::ColumnFunction, sizeof...(I)>{[](sqlite3_context* context, const void* row) {
        putValue(context, static_cast<const Row*>(row)->*std::get<I>(Table<Row>::kColumns).field);
    }...};
}

template <typename Row>
concept EventRow = requires(Row row) {
    row.id;
    row.rank;
}
&&(
    requires(Row row) { row.startNs; } || requires(Row row) { row.timeNs; });

/// The tables that grow with the job's length. Their pages are built here; all others go through SQLite.
template <typename Row>
concept BulkRow = EventRow<Row> || std::is_same_v<Row, Collective> || std::is_same_v<Row, P2p>;

template <typename Row>
int64_t durationOf(const Row& row) {
    if constexpr (requires { row.durNs.has_value(); }) {
        return row.durNs.value_or(0);
    } else if constexpr (requires { row.durNs; }) {
        return row.durNs;
    } else {
        return 0;
    }
}

void syncFile(const std::string& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!ok) throw Error(file, std::string("fsync: ") + std::strerror(error), "the disk may be full or failing");
}

}  // namespace

template <>
struct Table<StringRow> {
    static constexpr const char* kName = "string";
    static constexpr auto kColumns = std::make_tuple(Column{"id", &StringRow::id}, Column{"text", &StringRow::text});
};

template <>
struct Table<SymbolRow> {
    static constexpr const char* kName = "symbol";
    static constexpr auto kColumns =
        std::make_tuple(Column{"string_id", &SymbolRow::stringId}, Column{"demangled_id", &SymbolRow::demangledId},
                        Column{"short_id", &SymbolRow::shortId});
};

template <>
struct Table<MetaRow> {
    static constexpr const char* kName = "meta";
    static constexpr auto kColumns = std::make_tuple(Column{"key", &MetaRow::key}, Column{"value", &MetaRow::value});
};

struct TraceWriter::State {
    explicit State(const std::filesystem::path& targetPath) : target(targetPath), part(partFileOf(targetPath)) {
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
        makeEmpty();
        database.emplace(part.string(), OpenMode::create);
        beginSql();
        database->execute(std::string(schemaSql()));
    }

    ~State() {
        if (finished) return;
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
    }

    /// SQLite would follow a link, and make the file as open as the umask has it.
    void makeEmpty() const {
        const std::filesystem::path folder = part.has_parent_path() ? part.parent_path() : ".";
        const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, fileModeIn(folder));
        if (fd < 0)
            throw Error(part.string(), std::string("open: ") + std::strerror(errno),
                        "check that its folder exists, and your permissions there");
        ::close(fd);
    }

    // The file is SQLite's or ours, never both's: whoever is asked for it takes it from the other.

    Database& sql() {
        if (database) return *database;
        pages->close();
        pages.reset();
        database.emplace(part.string(), OpenMode::readWrite);
        beginSql();
        return *database;
    }

    PageFile& pageFile() {
        if (pages) return *pages;
        if (roots.empty()) readRoots();
        inserts.clear();
        database->execute("COMMIT");
        database->close();
        database.reset();
        return pages.emplace(part.string());
    }

    void beginSql() {
        database->execute(
            "PRAGMA page_size = 16384; PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = OFF; PRAGMA synchronous = "
            "OFF;PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;");
        database->execute("BEGIN");
    }

    void readRoots() {
        Statement tables(*database, "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'");
        while (tables.step()) roots[std::string(tables.text(0))] = static_cast<uint32_t>(tables.integer(1));
    }

    template <typename Row>
    void write(std::span<const Row> rows) {
        if (rows.empty()) return;
        if constexpr (BulkRow<Row>)
            writePages(rows);
        else
            insert(rows);
        if constexpr (EventRow<Row>) extend<Row>(rows);
    }

    template <typename Row>
    void writePages(std::span<const Row> rows) {
        PageFile& file = pageFile();
        TablePages& table =
            bulkTables.try_emplace(tableName<Row>(), tableName<Row>(), roots.at(tableName<Row>())).first->second;
        uint8_t record[kRecordRoom<Row>];
        for (const Row& row : rows) table.add(file, row.id, {record, encodeRow(row, record)});
    }

    void write(const EncodedRows& rows) {
        PageFile& file = pageFile();
        const auto root = roots.find(rows.table);
        if (root == roots.end()) throw Error(part.string(), "rows of an unknown table " + rows.table, {});
        TablePages& table = bulkTables.try_emplace(rows.table, rows.table, root->second).first->second;
        const auto* at = reinterpret_cast<const uint8_t*>(rows.records.data());
        const uint8_t* const end = at + rows.records.size();
        for (int64_t i = 0; i < rows.count; ++i) {
            const size_t bytes = end - at < 2 ? 0x10000 : size_t{at[0]} | size_t{at[1]} << 8;
            if (bytes + 2 > static_cast<size_t>(end - at))
                throw Error(part.string(), "rows of table " + rows.table + " are cut off", {});
            table.add(file, rows.firstId + i, {at + 2, bytes});
            at += bytes + 2;
        }
        extents.push_back({rows.table, rows.rank, rows.firstId, rows.firstId + rows.count - 1, rows.maxDurNs});
    }

    template <typename Row>
    void insert(std::span<const Row> rows) {
        static constexpr auto kFunctions = columnFunctions<Row>(std::make_index_sequence<kColumnCount<Row>>());
        Insert& insert = insertOf<Row>(sql());
        insert.feed->rows = {reinterpret_cast<const std::byte*>(rows.data()), sizeof(Row), rows.size(),
                             kFunctions.data()};
        insert.statement->run();
        insert.feed->rows = {};
    }

    template <typename Row>
    Insert& insertOf(Database& into) {
        const std::string table = tableName<Row>();
        Insert& insert = inserts[table];
        if (insert.feed) return insert;
        std::string names;
        std::apply(
            [&names](const auto&... column) {
                ((names += (names.empty() ? "" : ",") + std::string(column.name)), ...);
            },
            Table<Row>::kColumns);
        insert.feed = std::make_unique<RowFeed>(into, "feed_" + table, kColumnCount<Row>);
        insert.statement = std::make_unique<Statement>(
            into, "INSERT INTO main." + table + "(" + names + ") SELECT * FROM feed_" + table);
        return insert;
    }

    void close() {
        pageFile().close();
        pages.reset();
    }

    template <typename Row>
    void extend(std::span<const Row> rows) {
        for (size_t i = 0; i < rows.size();) {
            const int32_t rank = rows[i].rank;
            if (extents.empty() || extents.back().rank != rank || extents.back().tableName != tableName<Row>()) {
                extents.push_back({tableName<Row>(), rank, rows[i].id, rows[i].id, 0});
            }
            Extent& extent = extents.back();
            for (; i < rows.size() && rows[i].rank == rank; ++i) {
                extent.lastId = rows[i].id;
                extent.maxDurNs = std::max(extent.maxDurNs, durationOf(rows[i]));
            }
        }
    }

    std::filesystem::path target;
    std::filesystem::path part;
    std::optional<Database> database;
    std::optional<PageFile> pages;
    std::map<std::string, Insert> inserts;  // destroyed before the database
    std::map<std::string, TablePages> bulkTables;
    std::map<std::string, uint32_t> roots;
    std::map<std::string, std::string> meta;
    std::unordered_map<std::string, int32_t> stringIds;
    std::vector<StringRow> newStrings;
    std::vector<Extent> extents;
    int64_t nextLossId = 1;
    bool finished = false;
};

TraceWriter::TraceWriter(const std::filesystem::path& target) : m_state(std::make_unique<State>(target)) {}
TraceWriter::~TraceWriter() = default;

template <typename Row>
void TraceWriter::write(std::span<const Row> rows) {
    m_state->write(rows);
}

template <>
void TraceWriter::write(std::span<const Loss> rows) {
    std::vector<Loss> numbered(rows.begin(), rows.end());
    for (Loss& loss : numbered) loss.id = m_state->nextLossId++;
    m_state->write(std::span<const Loss>(numbered));
}

template void TraceWriter::write(std::span<const Host>);
template void TraceWriter::write(std::span<const ClockModel>);
template void TraceWriter::write(std::span<const Process>);
template void TraceWriter::write(std::span<const Rank>);
template void TraceWriter::write(std::span<const Device>);
template void TraceWriter::write(std::span<const MachineLink>);
template void TraceWriter::write(std::span<const Thread>);
template void TraceWriter::write(std::span<const Stream>);
template void TraceWriter::write(std::span<const Communicator>);
template void TraceWriter::write(std::span<const CommunicatorMember>);
template void TraceWriter::write(std::span<const Kernel>);
template void TraceWriter::write(std::span<const Memcpy>);
template void TraceWriter::write(std::span<const Memset>);
template void TraceWriter::write(std::span<const ApiCall>);
template void TraceWriter::write(std::span<const Synchronization>);
template void TraceWriter::write(std::span<const CudaEvent>);
template void TraceWriter::write(std::span<const Allocation>);
template void TraceWriter::write(std::span<const ThreadStack>);
template void TraceWriter::write(std::span<const DeviceHealth>);
template void TraceWriter::write(std::span<const PortCounter>);
template void TraceWriter::write(std::span<const FailedAllocation>);
template void TraceWriter::write(std::span<const NvtxRange>);
template void TraceWriter::write(std::span<const NcclCall>);
template void TraceWriter::write(std::span<const RecorderCall>);
template void TraceWriter::write(std::span<const RecorderGroup>);
template void TraceWriter::write(std::span<const ProxyOp>);
template void TraceWriter::write(std::span<const KernelSummary>);
template void TraceWriter::write(std::span<const KernelSpan>);
template void TraceWriter::write(std::span<const Counter>);
template void TraceWriter::write(std::span<const Collective>);
template void TraceWriter::write(std::span<const CollectiveMember>);
template void TraceWriter::write(std::span<const P2p>);
template void TraceWriter::write(std::span<const Step>);
template void TraceWriter::write(std::span<const SourceStatus>);
template void TraceWriter::write(std::span<const Shard>);

template <typename Row>
EncodedRows encodeRows(std::span<const Row> rows) {
    EncodedRows encoded{tableName<Row>(), rows.front().rank, rows.front().id, static_cast<int64_t>(rows.size()), 0, {}};
    uint8_t record[kRecordRoom<Row>];
    static_assert(kRecordRoom<Row> < 0x10000, "the length of a record takes two bytes");
    for (const Row& row : rows) {
        const size_t bytes = encodeRow(row, record);
        encoded.records += static_cast<char>(bytes & 0xff);
        encoded.records += static_cast<char>(bytes >> 8);
        encoded.records.append(reinterpret_cast<const char*>(record), bytes);
        encoded.maxDurNs = std::max(encoded.maxDurNs, durationOf(row));
    }
    return encoded;
}

template EncodedRows encodeRows(std::span<const Kernel>);
template EncodedRows encodeRows(std::span<const Memcpy>);
template EncodedRows encodeRows(std::span<const Memset>);
template EncodedRows encodeRows(std::span<const ApiCall>);
template EncodedRows encodeRows(std::span<const Synchronization>);
template EncodedRows encodeRows(std::span<const CudaEvent>);
template EncodedRows encodeRows(std::span<const Allocation>);
template EncodedRows encodeRows(std::span<const NvtxRange>);
template EncodedRows encodeRows(std::span<const NcclCall>);
template EncodedRows encodeRows(std::span<const ProxyOp>);
template EncodedRows encodeRows(std::span<const KernelSummary>);
template EncodedRows encodeRows(std::span<const KernelSpan>);
template EncodedRows encodeRows(std::span<const Counter>);

void TraceWriter::write(const EncodedRows& rows) {
    m_state->write(rows);
}

void TraceWriter::write(std::span<const Extent> extents) {
    m_state->extents.insert(m_state->extents.end(), extents.begin(), extents.end());
}

const std::vector<Extent>& TraceWriter::extents() const {
    return m_state->extents;
}

std::vector<std::string> TraceWriter::texts() const {
    std::vector<std::string> texts;
    for (const StringRow& row : m_state->newStrings) texts.push_back(row.text);
    return texts;
}

int32_t TraceWriter::intern(std::string_view text) {
    const auto id = static_cast<int32_t>(m_state->stringIds.size()) + 1;
    const auto [place, isNew] = m_state->stringIds.try_emplace(cleanUtf8(text), id);
    if (isNew) m_state->newStrings.push_back({id, place->first});
    return place->second;
}

void TraceWriter::setMeta(const std::string& key, std::string value) {
    m_state->meta[key] = cleanUtf8(value);
}

void TraceWriter::writeSymbols() {
    std::vector<SymbolRow> symbols;
    for (size_t i = 0, known = m_state->newStrings.size(); i < known; ++i) {  // what is interned here comes behind
        const StringRow row = m_state->newStrings[i];
        const std::string plain = demangled(row.text).value_or(row.text);
        const size_t parameters = parametersOf(plain);
        const bool isFunction = plain.ends_with(')') && parameters < plain.size() && parameters > 0 &&
                                plain[parameters - 1] != ' ';  // "step (warm)" is none
        if (isFunction) symbols.push_back({static_cast<int32_t>(row.id), intern(plain), intern(functionOf(plain))});
    }
    m_state->write(std::span<const SymbolRow>(symbols));
}

void TraceWriter::finish() {
    prepare();
    putInPlace();
}

void TraceWriter::prepare() {
    State& state = *m_state;
    std::vector<MetaRow> metaRows;
    for (const auto& [key, value] : state.meta) metaRows.push_back({key, value});
    state.write(std::span<const MetaRow>(metaRows));
    writeSymbols();
    state.write(std::span<const StringRow>(state.newStrings));
    std::sort(state.extents.begin(), state.extents.end(), [](const Extent& a, const Extent& b) {
        return std::tie(a.tableName, a.rank) < std::tie(b.tableName, b.rank);
    });
    state.write(std::span<const Extent>(state.extents));
    for (auto& [name, table] : state.bulkTables) table.finish(state.pageFile());
    state.close();
    syncFile(state.part.string());
}

const std::filesystem::path& TraceWriter::partFile() const {
    return m_state->part;
}

void TraceWriter::putInPlace() {
    State& state = *m_state;
    std::error_code error;
    std::filesystem::rename(state.part, state.target, error);
    if (error) throw Error(state.target.string(), "rename: " + error.message(), "check that the folder may be written");
    state.finished = true;
}

namespace {

/// Length of the valid UTF-8 sequence at the front of `text`, 0 when there is none.
size_t validSequence(std::string_view text) {
    const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first == 0) return 0;
    if (first < 0x80) return 1;
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return length;
}

}  // namespace

std::string cleanUtf8(std::string_view text) {
    std::string clean;
    clean.reserve(text.size());
    while (!text.empty()) {
        const size_t length = validSequence(text);
        if (length == 0) {
            clean += text[0] == '\0' ? " " : "\xef\xbf\xbd";
            text.remove_prefix(1);
            continue;
        }
        clean += text.substr(0, length);
        text.remove_prefix(length);
    }
    return clean;
}

}  // namespace rankscope::store
