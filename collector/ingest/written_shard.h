// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "collector/store/writer.h"

namespace rankscope::collector {

/// Names of the shards of as many processes, by their hosts: "node1.db", and "node1-2.db" of a second one there.
std::vector<std::string> shardNames(const std::vector<std::string>& hosts);

/// The shard that this process writes its ranks' events into, beside `database`. Until it is put in place an older one
/// stays as it was.
class WrittenShard {
  public:
    /// Throws store::Error where the folder cannot be made or written.
    WrittenShard(const std::filesystem::path& database, std::string name);

    const std::string& name() const noexcept { return m_name; }
    store::TraceWriter& events() noexcept { return m_writer; }

    /// Makes it whole: `texts` are those of trace.db, `mark` is store::newShardMark().
    void seal(const std::string& mark, std::span<const std::string> texts);
    /// Removes shards of earlier collections from the folder, too, also what was copied there from other hosts.
    void putInPlace();

  private:
    std::filesystem::path m_folder;
    std::string m_name, m_mark;
    store::TraceWriter m_writer;
};

/// Removes the shards of a trace.db that has none any more, and their folder where nothing else is in it. What is no
/// shard stays, and a folder that is a link to another is left alone.
void removeShards(const std::filesystem::path& database);

}  // namespace rankscope::collector
