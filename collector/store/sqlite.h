// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rankscope::store {

enum class OpenMode {
    readOnly,
    /// Read-only, and the file is taken never to change: nothing is locked or made beside it, as a read-only folder
    /// demands for a file in WAL mode, and a journal or log beside it is not looked at.
    immutable,
    readWrite,
    create
};

/// Asked again and again while another program holds the file, with the time waited so far; false gives up
/// (LockedFile).
using WhenLocked = std::function<bool(std::chrono::milliseconds waited)>;

/// Owns one connection. Used by one thread at a time. Every failure throws Error with call, file and SQLite's message.
class Database {
  public:
    Database(const std::string& file, OpenMode mode);
    ~Database();
    Database(Database&&) noexcept = default;
    Database& operator=(Database&&) noexcept = default;

    /// Without it a locked file is waited for 5 s. `ask` may run in any function of this class and of Statement; it
    /// must not throw.
    void whenLocked(WhenLocked ask);
    void execute(const std::string& sql);
    /// First column of the first row as an integer; `fallback` when there is no row.
    int64_t integer(const std::string& sql, int64_t fallback = 0);
    const std::string& file() const noexcept { return m_file; }
    sqlite3* handle() const noexcept { return m_handle.get(); }
    /// Closes now; what the destructor would swallow is thrown.
    void close();

  private:
    struct Close {
        void operator()(sqlite3* handle) const noexcept;
    };
    std::string m_file;
    std::unique_ptr<WhenLocked> m_whenLocked;
    std::unique_ptr<sqlite3, Close> m_handle;  // goes first: it calls m_whenLocked
};

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite. The Database must outlive it.
class Statement {
  public:
    Statement(Database& database, const std::string& sql);

    Statement& bind(int index, int64_t value);
    Statement& bind(int index, double value);
    Statement& bind(int index, std::string_view text);
    /// As a BLOB; they are copied.
    Statement& bindBytes(int index, std::span<const uint8_t> bytes);
    Statement& bindNull(int index);

    /// True while there is a row.
    bool step();
    void reset();
    /// step() to the end and reset(): for statements that return nothing.
    void run();

    bool isNull(int column) const;
    bool isInteger(int column) const;
    bool isBytes(int column) const;
    int64_t integer(int column) const;
    double real(int column) const;
    /// Valid until the next step().
    std::string_view text(int column) const;
    /// Valid until the next step(); none where the column is no BLOB.
    std::span<const uint8_t> bytes(int column) const;
    sqlite3_stmt* handle() const noexcept { return m_handle.get(); }

  private:
    struct Finalize {
        void operator()(sqlite3_stmt* handle) const noexcept;
    };
    Database* m_database;
    std::unique_ptr<sqlite3_stmt, Finalize> m_handle;
};

/// Rolls back unless committed.
class Transaction {
  public:
    explicit Transaction(Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

  private:
    Database* m_database;
    bool m_open = true;
};

/// The one place that turns a SQLite result code into an Error: `call` names what was asked, `detail` the SQL or
/// nothing.
void checkSqlite(int code, const Database& database, const char* call, std::string_view detail = {});

}  // namespace rankscope::store
