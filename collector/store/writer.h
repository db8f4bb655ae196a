// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/store/encoded_rows.h"
#include "collector/store/event_model.h"

namespace rankscope::store {

/// Makes one trace.db. Everything goes to a file beside the target; finish() puts it in place in one rename, and
/// without finish() (an exception, a full disk) the target stays as it was and the half-written file is removed. Used
/// by one thread at a time.
class TraceWriter {
  public:
    explicit TraceWriter(const std::filesystem::path& target);
    ~TraceWriter();
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    /// Appends rows of one table. Ids must grow from call to call (they are the clustered order); event rows of one
    /// rank must come together, sorted by start, ranks ascending: the extent table is kept from that. Ids of Loss rows
    /// are given here.
    template <typename Row>
    void write(std::span<const Row> rows);
    template <typename Row>
    void write(const Row& row) {
        write(std::span<const Row>(&row, 1));
    }

    /// Appends rows that are encoded already; as write() of the rows would.
    void write(const EncodedRows& rows);

    /// Extents of events that another writer has written, into a shard.
    void write(std::span<const Extent> extents);
    /// Of what was written so far.
    const std::vector<Extent>& extents() const;

    /// Id of a text in the `string` table: 1, 2… in order of first use.
    int32_t intern(std::string_view text);

    void setMeta(const std::string& key, std::string value);

    /// All that were interned, by id from 1.
    std::vector<std::string> texts() const;

    /// Writes strings, meta and extents, commits, syncs and renames.
    void finish();
    /// The same in two parts, for files that belong together: what can fail for want of space is prepare().
    void prepare();
    void putInPlace();
    /// Where it is until then.
    const std::filesystem::path& partFile() const;

  private:
    void writeSymbols();

    struct State;
    std::unique_ptr<State> m_state;
};

/// `text` with invalid UTF-8 replaced by U+FFFD and NUL bytes by blanks.
std::string cleanUtf8(std::string_view text);

}  // namespace rankscope::store
