// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_ranks.h"

#include <system_error>

#include "collector/ingest/packed_ranks.h"
#include "collector/ingest/side_by_side.h"
#include "collector/ingest/trace_tables.h"
#include "collector/ingest/written_shard.h"
#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/store/shards.h"
#include "collector/team/file_copies.h"
#include "collector/team/packing.h"

namespace rankscope::store {

template <typename Visit>
void forEachField(Extent& value, const Visit& visit) {
    auto& [tableName, rank, firstId, lastId, maxDurNs] = value;
    visit(tableName, rank, firstId, lastId, maxDurNs);
}

}  // namespace rankscope::store

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

/// Whether the trace.db with this mark is there, or about to be.
bool isThere(const fs::path& database, const std::string& mark) {
    const std::string name = database.filename().string();
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(database.parent_path(), ignored)) {
        const std::string its = entry.path().filename().string();
        if (its != name && !(its.starts_with("." + name + ".") && its.ends_with(".part"))) continue;
        if (store::shardMarkIn(entry.path(), store::kShardsKey) == mark) return true;
    }
    return false;
}

/// A trace.db that came from the first process, beside its place.
class CopiedTrace {
  public:
    explicit CopiedTrace(fs::path database)
        : m_database(std::move(database)), m_beside(store::partFileOf(m_database)) {}
    ~CopiedTrace() {
        std::error_code ignored;
        if (m_isThere) fs::remove(m_beside, ignored);
    }
    CopiedTrace(const CopiedTrace&) = delete;
    CopiedTrace& operator=(const CopiedTrace&) = delete;

    void receive(team::Team& team) {
        team::receiveFile([&team] { return team.awaitPart(); }, team.nameOf(0), m_beside);
        m_isThere = true;
    }
    void putInPlace() {
        if (!m_isThere) return;
        std::error_code error;
        fs::rename(m_beside, m_database, error);
        if (error)
            throw store::Error(m_database.string(), "rename: " + error.message(),
                               "check that the folder may be written");
        m_isThere = false;
    }

  private:
    fs::path m_database, m_beside;
    bool m_isThere = false;
};

std::vector<store::EncodedRows> encoded(RankRecording& recording, const RankTranslation& to) {
    std::vector<int32_t> traceIds(recording.strings.size(), 0);
    size_t next = 0;
    forEachName(recording, [&](int32_t& id) {
        int32_t& traceId = traceIds[static_cast<size_t>(id)];
        if (traceId == 0) traceId = to.names.at(next++);
        id = traceId;
    });
    std::vector<store::EncodedRows> tables;
    forEachEventTable(recording, [&]<typename Row>(const std::vector<Row>& rows) {
        if (!rows.empty()) tables.push_back(store::encodeRows(std::span<const Row>(rows)));
    });
    return tables;
}

}  // namespace

std::vector<std::string> namesOf(RankRecording& recording) {
    std::vector<bool> known(recording.strings.size());
    std::vector<std::string> names;
    forEachName(recording, [&](int32_t id) {
        if (known[static_cast<size_t>(id)]) return;
        known[static_cast<size_t>(id)] = true;
        names.push_back(recording.strings[id]);
    });
    return names;
}

namespace {

/// Messages 3 to 7 with a shard.
void helpWithShard(RankSources& sources, const std::vector<RankTranslation>& translations, team::Team& team,
                   const fs::path& database, const std::string& name) {
    WrittenShard shard(database, name);
    std::vector<std::vector<store::EncodedRows>> rows(sources.size());
    sideBySide(sources.size(), team.threads(), [&](size_t i) {
        const std::unique_ptr<RankRecording> recording = sources.take(i);
        translate(translations.at(i), *recording);
        rows[i] = encoded(*recording, translations[i]);
    });
    for (std::vector<store::EncodedRows>& tables : rows)
        for (const store::EncodedRows& table : std::exchange(tables, {})) shard.events().write(table);
    team.send(team::Packer()(shard.events().extents()).take());
    std::string mark;
    std::vector<std::string> texts;
    const std::string message = team.await();
    team::Unpacker(message, team.nameOf(0))(mark)(texts);
    shard.seal(mark, texts);
    team.send({});
    team.await();
    CopiedTrace copy(database);
    const bool there = isThere(database, mark);
    team.send(team::Packer()(there).take());
    if (!there) {
        copy.receive(team);
        team.send({});
    }
    team.await();
    copy.putInPlace();
    shard.putInPlace();
    team.send({});
}

}  // namespace

void helpBuildTrace(RankSources& sources, team::Team& team, uint64_t keepBytes, const fs::path& database,
                    const std::string& shard) {
    std::vector<std::vector<std::string>> names(sources.size());
    std::vector<RankSummary> summaries = sources.prepareAll(
        team.threads(), keepBytes, [&](size_t i, RankRecording& recording) { names[i] = namesOf(recording); });
    for (size_t i = 0; i < summaries.size(); ++i) {
        team.send(team::Packer()(summaries[i])(names[i]).take());
        summaries[i] = {};
    }
    const std::string answer = team.await();
    const auto translations = team::Unpacker(answer, team.nameOf(0)).get<std::vector<RankTranslation>>();
    if (!shard.empty()) return helpWithShard(sources, translations, team, database, shard);
    std::vector<std::string> rows(sources.size());
    sideBySide(sources.size(), team.threads(), [&](size_t i) {
        const std::unique_ptr<RankRecording> recording = sources.take(i);
        translate(translations.at(i), *recording);
        rows[i] = team::Packer()(encoded(*recording, translations[i])).take();
    });
    for (std::string& message : rows) team.send(std::exchange(message, {}));
}

std::vector<store::Extent> receiveExtents(team::Team& team, const std::map<int, std::string>& processes) {
    std::vector<store::Extent> extents;
    for (const auto& [process, file] : processes) {
        const std::string message = team.receiveFrom(process);
        const auto its = team::Unpacker(message, team.nameOf(process)).get<std::vector<store::Extent>>();
        extents.insert(extents.end(), its.begin(), its.end());
    }
    return extents;
}

void sealShards(team::Team& team, const std::map<int, std::string>& processes, const std::string& mark,
                const std::vector<std::string>& texts) {
    const std::string message = team::Packer()(mark)(texts).take();
    for (const auto& [process, file] : processes) team.sendTo(process, message);
    for (const auto& [process, file] : processes) team.receiveFrom(process);
}

void placeShards(team::Team& team, const std::map<int, std::string>& processes, const fs::path& file) {
    for (const auto& [process, name] : processes) {
        team.sendTo(process, {});
        const std::string answer = team.receiveFrom(process);
        if (team::Unpacker(answer, team.nameOf(process)).get<bool>()) continue;
        team::sendFile([&team, to = process](std::string_view part) { team.sendTo(to, part); }, file);
        team.receiveFrom(process);
    }
    // Not at once: each removes old shards, of which another may have replaced one in the meantime.
    for (const auto& [process, name] : processes) {
        team.sendTo(process, {});
        team.receiveFrom(process);
    }
}

}  // namespace rankscope::collector
