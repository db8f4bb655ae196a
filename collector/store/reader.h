// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/store/event_model.h"
#include "collector/store/shards.h"
#include "collector/store/sqlite.h"

namespace rankscope::store {

/// Rows one after the other, in id order. Must not outlive its reader.
template <typename Row>
class Cursor {
  public:
    /// Of no rows: asks the database nothing. A job may have a thousand ranks that have nothing in most tables.
    explicit Cursor(Database& database) : m_database(&database) {}
    /// `lastString`: a row that names a later string ends the reading; INT64_MAX: that is not looked at.
    Cursor(Database& database, const std::string& tail, int64_t lastString = INT64_MAX);
    /// Fills `row`; false at the end. Throws Error for a row that names a string which is not there.
    bool next(Row& row);

  private:
    void requireStringsOf(const Row& row) const;

    Database* m_database;
    int64_t m_lastString = INT64_MAX;
    std::optional<Statement> m_statement;
};

/// What becomes of a file with events that belong to no rank or to two, or that are not there, or with names that are
/// not there: a window may show the rest and say so. Looking for them takes as long as reading some thousand rows: once
/// for all threads and processes that read a file together is enough (lookedFor).
enum class MisplacedRows : uint8_t { refused, kept, lookedFor };

/// Reads a trace.db and its shards, as one; never writes. One reader per thread. Throws Error when there is no file,
/// when it is none of ours, not whole, damaged (DamagedFile; misplaced_rows.h), of another schema version, or held by
/// another program (LockedFile).
class TraceReader {
  public:
    /// A run name, a run directory or a .db file.
    explicit TraceReader(const std::filesystem::path& run, WhenLocked whenLocked = {},
                         MisplacedRows misplaced = MisplacedRows::refused,
                         MissingShards missing = MissingShards::refused);
    ~TraceReader();

    /// The .db file a run name, run directory or file means; the file need not exist.
    static std::filesystem::path databasePath(const std::filesystem::path& run);

    const std::string& file() const noexcept { return m_database.file(); }
    /// For SQL that the typed reading does not cover.
    Database& database() noexcept { return m_database; }
    /// The file with the rank's events, for whoever reads its pages (page_rows.h).
    Database& databaseOf(int32_t rank);
    /// In which shard each rank is; empty where there are none.
    const std::map<int32_t, std::string>& shardOfRank() const;
    /// Shards that are not where trace.db is, or are of another collection there.
    std::vector<std::string> missingShards() const;

    const std::map<std::string, std::string>& meta() const noexcept { return m_meta; }
    /// Value of a meta key, or `fallback`.
    std::string meta(const std::string& key, const std::string& fallback) const;
    int64_t metaInteger(const std::string& key, int64_t fallback) const;

    /// Text of a string id; empty for 0 and for ids that do not exist. All strings are loaded at the first call.
    const std::string& string(int64_t id);
    /// All of them by id; [0] is empty.
    const std::vector<std::string>& strings();

    /// A whole table, for the small ones (hosts, machine links, ranks, communicators, collectives, steps, losses…).
    /// Empty when the trace is older than the table.
    template <typename Row>
    std::vector<Row> all();
    /// Of Collective, CollectiveMember and P2p: rows with above < `column` <= upTo, which is what the table is sorted
    /// by. Without one of them, all on that side, also those whose value is null or text, as a damaged file may have.
    template <typename Row>
    std::vector<Row> allBetween(const char* column, std::optional<int64_t> above, std::optional<int64_t> upTo);
    /// A whole table in id order, streamed.
    template <typename Row>
    Cursor<Row> cursor() {
        return Cursor<Row>(m_database, "", m_lastString);
    }

    /// False for shard, counter, proxy_op, kernel_summary, kernel_span, machine_link, thread_stack, device_health,
    /// port_counter, failed_allocation, recorder_call, recorder_group and symbol in a trace.db that was written before
    /// that table existed; all others are always there.
    bool hasTable(const char* name);

    /// One rank's rows of an event table (Kernel, Memcpy, Memset, ApiCall, Synchronization, CudaEvent, Allocation,
    /// NvtxRange, NcclCall, ProxyOp, KernelSummary, KernelSpan, Counter) in order of start.
    template <typename Row>
    Cursor<Row> cursor(int32_t rank);
    /// As above, only rows that overlap [fromNs, toNs).
    template <typename Row>
    Cursor<Row> cursor(int32_t rank, int64_t fromNs, int64_t toNs);
    template <typename Row, typename Function>
    void forEach(int32_t rank, Function&& function) {
        Cursor<Row> rows = cursor<Row>(rank);
        Row row;
        while (rows.next(row)) function(static_cast<const Row&>(row));
    }
    /// One row by id; false when there is none.
    template <typename Row>
    bool find(int64_t id, Row& row);
    /// Ids of one rank's rows.
    template <typename Row>
    IdRange extent(int32_t rank) const;

  private:
    /// Of a table that is there, by its name; no more than the file has room for, whatever one that is not ours counts.
    size_t rowCount(const char* table);
    void readMeta();
    void readExtents();
    void findShards(MissingShards missing);
    void loadStrings();
    void refuseStrangeStrings();
    IdRange extentOf(const char* table, int32_t rank, int64_t* maxDurNs) const;

    std::unique_ptr<Shards> m_shards;  // null: none; goes last, since the database reads them
    Database m_database;
    std::map<std::string, std::string> m_meta;
    Extents m_extents;
    std::map<std::string, bool> m_hasTable;
    std::vector<std::string> m_strings;
    bool m_stringsLoaded = false;
    int64_t m_lastString = INT64_MAX;  // what cursors check names against
};

}  // namespace rankscope::store
