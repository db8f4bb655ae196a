// SPDX-License-Identifier: Apache-2.0
#include "collector/store/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "collector/store/error.h"
#include "collector/store/misplaced_rows.h"
#include "collector/store/tables.h"
#include "collector/store/whole_file.h"

namespace rankscope::store {
namespace {

constexpr const char* kCollectAgain = "make trace.db and its shards again with `rankscope collect --shards`";

/// "ranks 8, 9, 10 and 5 more".
std::string ranksIn(const std::map<int32_t, std::string>& fileOfRank, const std::string& file) {
    constexpr size_t kMostNamed = 3;  // enough to know the host by: a shard holds up to a hundred
    std::string named;
    size_t count = 0;
    for (const auto& [rank, its] : fileOfRank)
        if (its == file && ++count <= kMostNamed) named += (count == 1 ? "" : ", ") + std::to_string(rank);
    if (count > kMostNamed) named += fmt::format(" and {} more", count - kMostNamed);
    return (count == 1 ? "rank " : "ranks ") + named;
}

/// A name, and no way out of the folder.
bool isName(const std::string& file) {
    return !file.empty() && file.find('/') == std::string::npos && file.find('\0') == std::string::npos &&
           file[0] != '.';
}

}  // namespace

std::filesystem::path shardFolder(const std::filesystem::path& database) {
    return database.parent_path() / "trace.d";
}

std::string newShardMark() {
    std::random_device random;
    std::string mark;
    for (int word = 0; word < 4; ++word) mark += fmt::format("{:08x}", random());
    return mark;
}

std::string shardMarkIn(const std::filesystem::path& file, const char* key) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return {};
    try {
        refuseOtherFiles(file.string());
        Database database(file.string(), OpenMode::readOnly);
        Statement mark(database, "SELECT value FROM meta WHERE key = ?1");
        mark.bind(1, std::string_view(key));
        return mark.step() ? std::string(mark.text(0)) : std::string();
    } catch (const Error&) {
        return {};
    }
}

Shards::Shards(Database& trace, std::string mark, const Extents& extents)
    : m_trace(trace), m_folder(shardFolder(trace.file())), m_mark(std::move(mark)), m_extents(extents) {
    Statement rows(trace, "SELECT rank, file FROM main.shard ORDER BY rank");
    while (rows.step()) {
        std::string file(rows.text(1));
        if (!isName(file) || rows.integer(0) != static_cast<int32_t>(rows.integer(0)))
            throw Error(trace.file(),
                        fmt::format("damaged: table shard says that rank {} is in \"{}\"", rows.integer(0), file),
                        kCollectAgain);
        m_fileOfRank[static_cast<int32_t>(rows.integer(0))] = std::move(file);
    }
    if (!m_fileOfRank.empty() && m_mark.empty())
        throw Error(trace.file(), "damaged: it has shards, and does not say which", kCollectAgain);
}

const std::vector<std::string>& Shards::missing() {
    if (m_missing) return *m_missing;
    std::set<std::string> files;
    for (const auto& [rank, file] : m_fileOfRank) files.insert(file);
    // What cannot be read is here, and is refused when it is opened.
    std::erase_if(files, [&](const std::string& file) {
        std::error_code ignored;
        const std::string mark = shardMarkIn(m_folder / file, kShardOfKey);
        return std::filesystem::exists(m_folder / file, ignored) && (mark.empty() || mark == m_mark);
    });
    return m_missing.emplace(files.begin(), files.end());
}

Database* Shards::of(int32_t rank) {
    const auto at = m_fileOfRank.find(rank);
    return at == m_fileOfRank.end() ? nullptr : &open(at->second);
}

void Shards::refuseBadParts() {
    for (const std::string table : kEventTables) {
        int64_t next = INT64_MIN;
        for (const Part& part : partsOf(table)) {
            const bool isTwice = part.ids.first < next, isNowhere = !m_fileOfRank.contains(part.rank);
            if (isTwice || isNowhere)
                throw Error(m_trace.file(),
                            fmt::format("damaged: table extent gives events of rank {} in table {} to {}", part.rank,
                                        table, isTwice ? "two ranks" : "no shard"),
                            kCollectAgain);
            next = part.ids.last + 1;
        }
    }
    if (m_trace.integer("SELECT EXISTS (SELECT 1 FROM main.shard WHERE rank NOT IN (SELECT rank FROM main.rank))") != 0)
        throw Error(m_trace.file(), "damaged: there are events of ranks that table rank does not list", kCollectAgain);
}

void Shards::checkAll(MissingShards others) {
    refuseBadParts();
    std::set<std::string> checked;
    if (others == MissingShards::elsewhere) checked = {missing().begin(), missing().end()};
    for (const auto& [rank, file] : m_fileOfRank)
        if (checked.insert(file).second) refuseMisplacedRows(open(file));
}

const std::vector<Shards::Part>& Shards::partsOf(const std::string& table) {
    const auto [place, isNew] = m_parts.try_emplace(table);
    if (!isNew) return place->second;
    for (auto at = m_extents.lower_bound({table, INT32_MIN}); at != m_extents.end() && at->first.first == table; ++at)
        if (at->second.lastId >= at->second.firstId)
            place->second.push_back({{at->second.firstId, at->second.lastId}, at->second.rank});
    std::ranges::sort(place->second, {}, [](const Part& part) { return part.ids.first; });
    return place->second;
}

Database& Shards::open(const std::string& file) {
    if (const auto at = m_open.find(file); at != m_open.end()) return at->second;
    const std::string path = (m_folder / file).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        throw Error(
            path, "no such file: it holds the events of " + ranksIn(m_fileOfRank, file),
            "copy it here from its host, analyse under mpirun with a process there, or collect without --shards");
    refuseOtherFiles(path);
    Database shard(path, OpenMode::readOnly);
    refusePartsOfATrace(shard);
    Statement mark(shard, "SELECT value FROM meta WHERE key = ?1");
    mark.bind(1, std::string_view(kShardOfKey));
    if (!mark.step() || mark.text(0) != m_mark)
        throw Error(path, "it belongs to another collection than trace.db", kCollectAgain);
    refuseOtherRanks(shard, file);
    shard.execute("PRAGMA cache_size = -4096; PRAGMA mmap_size = 0; PRAGMA query_only = ON");
    return m_open.emplace(file, std::move(shard)).first->second;
}

void Shards::refuseOtherRanks(Database& shard, const std::string& file) const {
    size_t expected = 0, found = 0;
    for (const auto& [key, extent] : m_extents) {
        const auto at = m_fileOfRank.find(key.second);
        const bool here = at != m_fileOfRank.end() && at->second == file;
        expected += here && std::ranges::find(kEventTables, key.first) != std::end(kEventTables);
    }
    Statement rows(shard, "SELECT table_name, rank, first_id, last_id FROM extent");
    while (rows.step()) {
        const auto rank = static_cast<int32_t>(rows.integer(1));
        const auto place = rows.integer(1) == rank ? m_fileOfRank.find(rank) : m_fileOfRank.end();
        if (place == m_fileOfRank.end() || place->second != file)
            throw Error(shard.file(),
                        fmt::format("it holds events of rank {}, which trace.db {}", rows.integer(1),
                                    place == m_fileOfRank.end() ? "does not have in shards"
                                                                : "has in " + (m_folder / place->second).string()),
                        "a rank is in one shard: put each host's own file in its place, or collect again");
        const auto extent = m_extents.find({std::string(rows.text(0)), rank});
        found += extent != m_extents.end() && extent->second.firstId == rows.integer(2) &&
                 extent->second.lastId == rows.integer(3);
    }
    if (found != expected)
        throw Error(shard.file(),
                    "damaged: its table extent is not what trace.db says of " + ranksIn(m_fileOfRank, file),
                    kCollectAgain);
}

}  // namespace rankscope::store
