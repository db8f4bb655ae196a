// SPDX-License-Identifier: Apache-2.0
// Files of events beside a trace.db, for a job whose hosts share no disk: NAME/trace.d/HOST.db. A shard is a SQLite
// file with the tables of schema.sql, of which it fills string, symbol, extent and those of events, with the ids of the
// whole trace; of its ranks table rank holds the numbers alone. What joins the ranks is in trace.db, which lists in
// `shard` who is where.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/store/event_model.h"
#include "collector/store/sqlite.h"

namespace rankscope::store {

/// Row ids of one rank in one event table. Empty when last < first.
struct IdRange {
    int64_t first = 0;
    int64_t last = -1;
    bool empty() const noexcept { return last < first; }
    int64_t count() const noexcept { return empty() ? 0 : last - first + 1; }
};

inline constexpr const char* kShardsKey = "shards";     ///< in meta of a trace.db with shards: their mark
inline constexpr const char* kShardOfKey = "shard_of";  ///< in meta of a shard: the same

/// trace.d beside trace.db.
std::filesystem::path shardFolder(const std::filesystem::path& database);

/// What tells the shards of one collection from those of another: drawn anew for each, in hexadecimal.
std::string newShardMark();

/// The mark that `file` bears in meta under `key`; empty where it is no file, no SQLite database, or has none.
std::string shardMarkIn(const std::filesystem::path& file, const char* key);

/// Where the events of some ranks lie in shards on other hosts: `elsewhere` reads what is here, and throws Error for
/// the rest when it is asked for.
enum class MissingShards : uint8_t { refused, elsewhere };

using Extents = std::map<std::pair<std::string, int32_t>, Extent>;  ///< by table and rank

/// The shards of a trace.db. Each is opened, and checked against trace.db, when it is first asked for. Used by one
/// thread, as its trace.db.
class Shards {
  public:
    /// Both must outlive it; `extents`: those of trace.db.
    Shards(Database& trace, std::string mark, const Extents& extents);

    /// Which of the files are not where trace.db is, or are of another collection. Of others' contents nothing is said.
    const std::vector<std::string>& missing();
    const std::map<int32_t, std::string>& fileOfRank() const noexcept { return m_fileOfRank; }

    /// The shard with this rank's events; null where no shard has them. Throws Error for a file that is missing, of
    /// another version or collection, damaged, or that holds other ranks than trace.db says.
    Database* of(int32_t rank);

    /// Ids of an event table in their order, each with its rank.
    struct Part {
        IdRange ids;
        int32_t rank = 0;
    };
    const std::vector<Part>& partsOf(const std::string& table);

    /// Looks into those that are here. Throws Error where of() would, and where a row at an end of an extent is missing
    /// or another rank's, and others belong to none (misplaced_rows.h).
    void checkAll(MissingShards others);

  private:
    Database& open(const std::string& file);
    void refuseBadParts();
    void refuseOtherRanks(Database& shard, const std::string& file) const;

    Database& m_trace;
    std::filesystem::path m_folder;
    std::string m_mark;
    const Extents& m_extents;
    std::map<int32_t, std::string> m_fileOfRank;
    std::optional<std::vector<std::string>> m_missing;
    std::map<std::string, Database> m_open;
    std::map<std::string, std::vector<Part>> m_parts;
};

}  // namespace rankscope::store
