// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/written_shard.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <system_error>

#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/store/shards.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

fs::path madeFolder(const fs::path& database) {
    const fs::path folder = store::shardFolder(database);
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(folder, ignored)))
        throw store::Error(folder.string(), "it is a link, and shards are written into a folder only",
                           "remove it, or collect without --shards");
    try {
        store::makeFolderInside(folder);
    } catch (const fs::filesystem_error& error) {
        throw store::Error(folder.string(), "cannot make the folder: " + error.code().message(),
                           "check that nothing else is there, and your permissions");
    }
    return folder;
}

/// Hosts name themselves: nothing of a name leads out of a folder.
std::string fileNameOf(std::string host) {
    for (char& c : host)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.') c = '_';
    if (host.empty() || host.front() == '.') host.insert(0, "_");
    return host;
}

/// Shards of other collections than this one.
void removeOthers(const fs::path& folder, const std::string& mark) {
    std::error_code ignored;
    std::vector<fs::path> old;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
        if (!fs::is_regular_file(entry.symlink_status(ignored)) || entry.path().extension() != ".db" ||
            entry.path().filename().string().starts_with("."))
            continue;
        const std::string its = store::shardMarkIn(entry.path(), store::kShardOfKey);
        if (!its.empty() && its != mark) old.push_back(entry.path());
    }
    for (const fs::path& path : old) fs::remove(path, ignored);
}

}  // namespace

std::vector<std::string> shardNames(const std::vector<std::string>& hosts) {
    std::vector<std::string> names;
    std::set<std::string> taken;
    for (const std::string& host : hosts) {
        const std::string plain = fileNameOf(host);
        std::string name = plain + ".db";
        for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}-{}.db", plain, number);
        names.push_back(std::move(name));
    }
    return names;
}

WrittenShard::WrittenShard(const fs::path& database, std::string name)
    : m_folder(madeFolder(database)), m_name(std::move(name)), m_writer(m_folder / m_name) {}

void WrittenShard::seal(const std::string& mark, std::span<const std::string> texts) {
    m_mark = mark;
    for (const std::string& text : texts) m_writer.intern(text);
    std::set<int32_t> ranks;
    for (const store::Extent& extent : m_writer.extents()) ranks.insert(extent.rank);
    for (const int32_t rank : ranks) m_writer.write(store::Rank{.rank = rank});  // so that it is sound by itself
    m_writer.setMeta(store::kShardOfKey, mark);
    m_writer.prepare();
}

void WrittenShard::putInPlace() {
    m_writer.putInPlace();
    removeOthers(m_folder, m_mark);
}

void removeShards(const fs::path& database) {
    const fs::path folder = store::shardFolder(database);
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(folder, ignored))) return;
    removeOthers(folder, {});
    fs::remove(folder, ignored);  // unless something else is in it
}

}  // namespace rankscope::collector
