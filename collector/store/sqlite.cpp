// SPDX-License-Identifier: Apache-2.0
#include "collector/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collector/store/error.h"

namespace rankscope::store {
namespace {

constexpr int kDefaultPatienceMs = 5000;
constexpr int kMsBetweenTries = 25;

std::string hintFor(int code) {
    switch (code & 0xff) {
        case SQLITE_FULL:
            return "the disk is full: free some space or write elsewhere";
        case SQLITE_READONLY:
            return "the file or its folder is read-only: write elsewhere with -o";
        case SQLITE_CANTOPEN:
            return "check that its folder exists, and your permissions there";
        case SQLITE_IOERR:
            return "the disk may be full or failing";
        default:
            return {};
    }
}

/// The URI of a file, relative or absolute, that is taken never to change. A path's own %, ? and # are escaped, and so
/// is its /, since two at the start would name a machine (https://www.sqlite.org/uri.html).
std::string immutableUri(const std::string& file) {
    std::string uri = "file:";
    for (const char c : file) {
        switch (c) {
            case '%':
                uri += "%25";
                break;
            case '?':
                uri += "%3F";
                break;
            case '#':
                uri += "%23";
                break;
            case '/':
                uri += "%2F";
                break;
            default:
                uri += c;
        }
    }
    return uri + "?immutable=1";
}

/// What a writer that was killed has left beside a file, to be undone by who opens it next.
enum class Journal { none, unfinished };

// A journal may name a file that several databases have in common, which is deleted when all is undone
// (https://www.sqlite.org/fileformat2.html, "The Rollback Journal": behind the pages its name, its checksum and the
// journal's magic number). Ours never do, so that such a one was put there to have us delete something.
Journal journalBeside(const std::string& file) {
    constexpr unsigned char kMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    const std::string name = file + "-journal";
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return Journal::none;
    struct stat info {};
    unsigned char begin[sizeof kMagic] = {}, end[sizeof kMagic] = {};
    bool isRead = fd >= 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const bool isLong = isRead && info.st_size >= static_cast<off_t>(sizeof end);
    if (isLong)
        isRead = ::pread(fd, begin, sizeof begin, 0) == sizeof begin &&
                 ::pread(fd, end, sizeof end, info.st_size - static_cast<off_t>(sizeof end)) == sizeof end;
    if (fd >= 0) ::close(fd);
    if (!isRead ||
        (isLong && info.st_size > static_cast<off_t>(sizeof end) && std::memcmp(end, kMagic, sizeof end) == 0))
        throw DamagedFile(file, "the journal beside it is none of Rankscope's", "look at " + name + ", and remove it");
    return isLong && std::memcmp(begin, kMagic, sizeof begin) == 0 ? Journal::unfinished : Journal::none;
}

}  // namespace

void checkSqlite(int code, const Database& database, const char* call, std::string_view detail) {
    const int kind = code & 0xff;
    if (kind == SQLITE_OK || kind == SQLITE_ROW || kind == SQLITE_DONE) return;
    const std::string message = database.handle() ? sqlite3_errmsg(database.handle()) : sqlite3_errstr(code);
    // What the file is like has nothing to do with what was asked of it.
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED)
        throw LockedFile(database.file(), "locked by another program",
                         "it is writing to the file: try again when it has ended");
    if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB)
        throw DamagedFile(database.file(), message,
                          "the file is damaged: make it again with `rankscope collect` or `rankscope import`");
    std::string cause = std::string(call) + ": " + message;
    if (!detail.empty()) cause.append(" in: ").append(detail.substr(0, 200));
    throw Error(database.file(), cause, hintFor(code));
}

void Database::Close::operator()(sqlite3* handle) const noexcept {
    sqlite3_close_v2(handle);
}

Database::Database(const std::string& file, OpenMode mode) : m_file(file) {
    // Who reads cannot undo what a killed writer left, and is refused.
    if (mode != OpenMode::create && mode != OpenMode::immutable && journalBeside(file) == Journal::unfinished &&
        mode == OpenMode::readOnly) {
        try {
            Database(file, OpenMode::readWrite).integer("SELECT count(*) FROM sqlite_master");
        } catch (const Error&) {  // where that is not permitted, reading tells
        }
    }
    int flags = SQLITE_OPEN_NOMUTEX;
    const bool isRead = mode == OpenMode::readOnly || mode == OpenMode::immutable;
    flags |= isRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (mode == OpenMode::create) flags |= SQLITE_OPEN_CREATE;
    if (mode == OpenMode::immutable) flags |= SQLITE_OPEN_URI;
    const std::string name = mode == OpenMode::immutable ? immutableUri(file) : file;
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
    m_handle.reset(handle);
    checkSqlite(code, *this, "open");
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_timeout(handle, kDefaultPatienceMs);
    if (mode == OpenMode::create) return;
    // A trace.db is passed on from hand to hand: what it holds is data, and nothing of it is executed.
    for (int setting : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
        checkSqlite(sqlite3_db_config(handle, setting, 0, nullptr), *this, "configure");
    checkSqlite(sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr), *this, "configure");
    // Ours are far below: texts are of some KiB at most, statements are written in the sources.
    constexpr int kLongestValue = 64 << 20, kLongestStatement = 1 << 20, kMostColumns = 200, kDeepestExpression = 100;
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestValue);
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, kLongestStatement);
    sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, kMostColumns);
    sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, kDeepestExpression);
}

Database::~Database() = default;

void Database::whenLocked(WhenLocked ask) {
    m_whenLocked = std::make_unique<WhenLocked>(std::move(ask));  // its address stays when the Database is moved
    sqlite3_busy_handler(
        handle(),
        [](void* asked, int tries) {
            if (!(*static_cast<WhenLocked*>(asked))(std::chrono::milliseconds(tries * kMsBetweenTries))) return 0;
            sqlite3_sleep(kMsBetweenTries);
            return 1;
        },
        m_whenLocked.get());
}

void Database::execute(const std::string& sql) {
    checkSqlite(sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr), *this, "execute", sql);
}

int64_t Database::integer(const std::string& sql, int64_t fallback) {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : fallback;
}

void Database::close() {
    sqlite3* handle = m_handle.release();
    const int code = sqlite3_close(handle);
    if (code == SQLITE_OK) return;
    m_handle.reset(handle);
    checkSqlite(code, *this, "close");
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
    sqlite3_finalize(handle);
}

Statement::Statement(Database& database, const std::string& sql) : m_database(&database) {
    sqlite3_stmt* handle = nullptr;
    const int code = sqlite3_prepare_v3(database.handle(), sql.c_str(), static_cast<int>(sql.size()) + 1,
                                        SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
    m_handle.reset(handle);
    checkSqlite(code, database, "prepare", sql);
}

Statement& Statement::bind(int index, int64_t value) {
    checkSqlite(sqlite3_bind_int64(handle(), index, value), *m_database, "bind");
    return *this;
}

Statement& Statement::bind(int index, double value) {
    checkSqlite(sqlite3_bind_double(handle(), index, value), *m_database, "bind");
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    checkSqlite(sqlite3_bind_text64(handle(), index, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                                    SQLITE_UTF8),
                *m_database, "bind");
    return *this;
}

Statement& Statement::bindBytes(int index, std::span<const uint8_t> bytes) {
    checkSqlite(sqlite3_bind_blob64(handle(), index, bytes.empty() ? "" : static_cast<const void*>(bytes.data()),
                                    bytes.size(), SQLITE_TRANSIENT),
                *m_database, "bind");
    return *this;
}

Statement& Statement::bindNull(int index) {
    checkSqlite(sqlite3_bind_null(handle(), index), *m_database, "bind");
    return *this;
}

bool Statement::step() {
    const int code = sqlite3_step(handle());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) checkSqlite(code, *m_database, "step", sqlite3_sql(handle()));
    return false;
}

void Statement::reset() {
    sqlite3_reset(handle());
    sqlite3_clear_bindings(handle());
}

void Statement::run() {
    while (step()) {
    }
    reset();
}

bool Statement::isBytes(int column) const {
    return sqlite3_column_type(handle(), column) == SQLITE_BLOB;
}

bool Statement::isInteger(int column) const {
    return sqlite3_column_type(handle(), column) == SQLITE_INTEGER;
}
bool Statement::isNull(int column) const {
    return sqlite3_column_type(handle(), column) == SQLITE_NULL;
}
int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(handle(), column);
}
double Statement::real(int column) const {
    return sqlite3_column_double(handle(), column);
}

std::string_view Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle(), column));
    return bytes ? std::string_view(bytes, static_cast<size_t>(sqlite3_column_bytes(handle(), column)))
                 : std::string_view();
}

std::span<const uint8_t> Statement::bytes(int column) const {
    if (!isBytes(column)) return {};
    const auto* bytes = static_cast<const uint8_t*>(sqlite3_column_blob(handle(), column));
    return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle(), column))};
}

Transaction::Transaction(Database& database) : m_database(&database) {
    database.execute("BEGIN");
}

Transaction::~Transaction() {
    if (m_open) sqlite3_exec(m_database->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
    m_database->execute("COMMIT");
    m_open = false;
}

}  // namespace rankscope::store
