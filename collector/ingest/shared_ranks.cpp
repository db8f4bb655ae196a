// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_ranks.h"

#include "collector/ingest/packed_ranks.h"
#include "collector/ingest/side_by_side.h"
#include "collector/ingest/trace_tables.h"
#include "collector/ingest/written_shard.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
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

/// What trace.db and its shards are told of each other.
struct Seal {
    std::string mark;
    std::vector<std::string> texts;
    std::vector<std::string> files;  // of all shards
};

template <typename Visit>
void forEachField(Seal& value, const Visit& visit) {
    auto& [mark, texts, files] = value;
    visit(mark, texts, files);
}

/// Whether `database` is the trace.db with this mark.
bool isThere(const fs::path& database, const std::string& mark) {
    std::error_code ignored;
    if (!fs::exists(database, ignored)) return false;
    try {
        store::TraceReader trace(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
        return trace.meta(store::kShardsKey, "") == mark;
    } catch (const store::Error&) {
        return false;
    }
}

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

/// Messages 3 to 6 with a shard.
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
    const std::string message = team.await();
    const auto seal = team::Unpacker(message, team.nameOf(0)).get<Seal>();
    shard.seal(seal.mark, seal.texts);
    team.send({});
    team.await();
    shard.putInPlace({seal.files.begin(), seal.files.end()});
    const bool there = isThere(database, seal.mark);
    team.send(team::Packer()(there).take());
    if (there) return;
    team::receiveFile([&team] { return team.awaitPart(); }, team.nameOf(0), database);
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
                const std::vector<std::string>& texts, const std::set<std::string>& files) {
    const std::string message = team::Packer()(Seal{mark, texts, {files.begin(), files.end()}}).take();
    for (const auto& [process, file] : processes) team.sendTo(process, message);
    for (const auto& [process, file] : processes) team.receiveFrom(process);
}

void placeShards(team::Team& team, const std::map<int, std::string>& processes, const fs::path& database) {
    for (const auto& [process, file] : processes) {
        team.sendTo(process, {});
        const std::string answer = team.receiveFrom(process);
        if (team::Unpacker(answer, team.nameOf(process)).get<bool>()) continue;
        team::sendFile([&team, to = process](std::string_view part) { team.sendTo(to, part); }, database);
        team.receiveFrom(process);
    }
}

}  // namespace rankscope::collector
